//! A stream in the terms of one GPU model.

use slicewise::catalog::Model;
use slicewise::formats::StreamRequest;
use slicewise::ids::ProfileId;
use slicewise::space::Grid;
use slicewise::{Ask, MixEntry};
use thiserror::Error;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it comes, thousandths of the stream's unit.
    pub arrival_milli: u64,
    /// How long it stays, in the same unit.
    pub lifetime_milli: u64,
    /// What it asks.
    pub profile: ProfileId,
    /// Memory slices of that.
    pub slices: u16,
}

/// Requests, and the grid of the GPUs that they come to.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Id of the GPU model.
    pub model: String,
    /// What such a GPU offers.
    pub grid: Grid,
    /// In the order of arrival.
    pub requests: Vec<Request>,
}

/// A profile that the model does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("request {index}: {model} has no profile `{profile}` with known placements")]
pub struct StreamError {
    /// Position of the request.
    pub index: usize,
    /// The model.
    pub model: String,
    /// The profile.
    pub profile: String,
}

impl Stream {
    /// The stream on GPUs of a model.
    ///
    /// # Errors
    /// A profile that the model does not have.
    pub fn new(model: &Model, requests: &[StreamRequest]) -> Result<Self, StreamError> {
        let grid = Grid::of(model, &[], None);
        let request = |(index, request): (usize, &StreamRequest)| {
            let unknown = || StreamError { index, model: model.id.clone(), profile: request.profile.clone() };
            let profile = grid.find(&request.profile).filter(|id| !grid.rows()[*id].starts.is_empty());
            let profile = profile.ok_or_else(unknown)?;
            let StreamRequest { arrival_milli, lifetime_milli, .. } = *request;
            Ok(Request { arrival_milli, lifetime_milli, profile, slices: grid.rows()[profile].size })
        };
        let requests = requests.iter().enumerate().map(request).collect::<Result<_, _>>()?;
        Ok(Self { model: model.id.clone(), grid, requests })
    }

    /// How often each profile is asked: the demand that a policy may expect.
    pub fn mix(&self) -> Vec<MixEntry> {
        let asked = |id: ProfileId| self.requests.iter().filter(|request| request.profile == id).count();
        let entry = |id: ProfileId| MixEntry {
            ask: Ask::Profile(self.grid.rows()[id].name.clone()),
            weight: u32::try_from(asked(id)).unwrap_or(u32::MAX),
        };
        self.grid.rows().ids().map(entry).filter(|entry| entry.weight > 0).collect()
    }
}
