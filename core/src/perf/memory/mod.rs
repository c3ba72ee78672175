//! How much memory a model needs, what happens when tenants are promised more than there
//! is, and how likely it is that they want it at once.

mod ask;
mod exceed;
mod model;
mod oversubscribe;
mod size;

pub use ask::{SharedMemory, SizeAnswer, SizeAsk, answer};
pub use exceed::{Exceed, Usage, UsageBin, admitted, exceed};
pub use model::{ModelMemory, Optimizer, Precision, Task};
pub use oversubscribe::{Mechanism, Pressed, Relief, relief};
pub use size::{Fit, Item, ProfileFit, Size, fits, size};
