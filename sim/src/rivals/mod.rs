//! Published policies to compare with, written from their published rules. None is part of
//! the product: they run on the replay's own small models, and the engine knows none of them.

pub mod mig;
pub mod openb;
