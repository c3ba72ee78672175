//! Replays of published traces, with the policies of Slicewise and, beside them, those
//! that others have published.
//!
//! * [`openb`]: pods of a cluster trace arrive one by one and stay (the protocol of the
//!   ATC'23 study of GPU fragmentation).
//! * [`mig`]: MIG instances arrive and leave.
//! * [`rivals`]: policies to compare with, written from their published rules. They run on
//!   small models of their own and are no part of the product.
//!
//! There is no I/O, clock or thread here. Randomness comes from the seed that is given.
//! Who wants to measure time is told when a decision begins and ends ([`Moment`]).

pub mod mig;
pub mod openb;
pub mod rivals;

/// Where a replay is; told to its observer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A decision begins.
    Deciding,
    /// The decision is made and not yet applied.
    Decided,
    /// What was decided is applied.
    Applied,
}

/// Told where a replay is: `(moment, step)`.
pub type Observer<'a> = dyn FnMut(Moment, usize) + 'a;

/// The nearest whole number; halves go to the even one, as in the published tables.
fn rounded(dividend: u128, divisor: u128) -> u128 {
    let Some(whole) = dividend.checked_div(divisor) else { return 0 };
    let twice_rest = 2 * (dividend % divisor);
    let up = twice_rest > divisor || (twice_rest == divisor && whole % 2 == 1);
    whole + u128::from(up)
}
