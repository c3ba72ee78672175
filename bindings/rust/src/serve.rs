//! Serving inference models, as programs ask for it.

use slicewise_core::catalog::Catalog;
use slicewise_core::serving::{Served, Serving};

use crate::error::Error;

/// The fewest GPUs of a model of the built-in catalog, and how to cut them, that serve
/// models at their rates within their latency objectives. The answer has passed the
/// checker, its bound included. See [`serve_with`](crate::serve_with) for another catalog,
/// budget or back end.
///
/// ```
/// use slicewise::serving::{MAX_PROCESSES, Point, SLO_SHARE_PPM, Served, Serving, Target};
///
/// let point = |compute_slices, throughput_milli| Point {
///     model: "net".into(), compute_slices, batch: 8, processes: 1, throughput_milli, latency_us: 20_000,
/// };
/// let request = Serving {
///     gpu: "a100-80gb".into(),
///     max_processes: MAX_PROCESSES,
///     slo_share_ppm: SLO_SHARE_PPM,
///     points: vec![point(1, 100_000), point(3, 350_000), point(7, 690_000)],
///     targets: vec![Target { model: "net".into(), rate_milli: 1_400_000, slo_us: 50_000 }],
/// };
/// let Served::Deployment(answer) = slicewise::serve(&request)? else { unreachable!("20 ms is below 22.5 ms") };
/// assert_eq!((answer.gpus, answer.bound, answer.verified), (2, 2, true));
/// # Ok::<(), slicewise::Error>(())
/// ```
///
/// # Errors
/// A request that is not well formed. A target that nothing can serve is no error: the
/// answer is then [`Served::Refused`].
pub fn serve(request: &Serving) -> Result<Served, Error> {
    Ok(slicewise_solver::serve(&Catalog::built_in()?, request)?)
}
