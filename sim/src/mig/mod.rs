//! Replay of a stream of MIG requests: each is placed or refused when it comes, and leaves
//! when its lifetime ends.

mod engine;
mod outcome;
mod replay;
mod stream;

pub use engine::Product;
pub use outcome::Outcome;
pub use replay::{Admission, Placer, ReplayError, replay};
pub use stream::{Request, Stream, StreamError};
