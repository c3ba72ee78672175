//! The parameters of the model: one table of named figures, each with its source and how
//! well it is known, and each open to a user's own figure.

use alloc::collections::BTreeMap;

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::range::Range;
use crate::data::table;
use crate::error::{Fault, InputError};

const BUILT_IN: &str = include_str!("../../data/perf.json");

/// What kind of work it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Answers requests; latency first.
    #[default]
    Inference,
    /// Trains a model; throughput per cost first.
    Training,
    /// A person at a notebook: long idle times.
    Interactive,
    /// Work without a deadline.
    Batch,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Inference, Self::Training, Self::Interactive, Self::Batch];

    /// Its name in documents and parameter names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inference => "inference",
            Self::Training => "training",
            Self::Interactive => "interactive",
            Self::Batch => "batch",
        }
    }
}

/// How a figure is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Fitted to or read from measurements that are public and repeatable here.
    Measured,
    /// Stated by a publication or a manual.
    Published,
    /// Held to be so; no measurement here supports it.
    Assumed,
    /// Given by the user.
    User,
}

/// A parameter: its values and where they are from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Low end.
    pub low: u64,
    /// Expected value.
    pub expected: u64,
    /// High end.
    pub high: u64,
    /// How it is known.
    pub status: Status,
    /// Keys into the table of sources.
    #[serde(default)]
    pub sources: Vec<String>,
    /// What it is.
    pub note: String,
}

impl Figure {
    /// Its values.
    pub fn range(&self) -> Range {
        Range { low: self.low, expected: self.expected, high: self.high }
    }
}

/// A user's own figure: one number, or a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Override {
    /// Known exactly.
    Value(u64),
    /// Known between two ends.
    Range(Range),
}

/// The table of parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    figures: BTreeMap<String, Figure>,
    sources: BTreeMap<String, String>,
}

impl Parameters {
    /// The built-in table.
    ///
    /// # Errors
    /// None in a released build: a test reads the data that is compiled in.
    pub fn built_in() -> Result<Self, InputError> {
        let parameters = table("parameters", BUILT_IN)?;
        Ok(Self { figures: parameters.rows, sources: parameters.sources })
    }

    /// The same table with a user's figures in place of its own.
    ///
    /// # Errors
    /// A name that is no parameter, or a range whose ends are not in order.
    pub fn with(mut self, overrides: &BTreeMap<String, Override>) -> Result<Self, InputError> {
        for (name, value) in overrides {
            let range = match *value {
                Override::Value(value) => Range::exact(value),
                Override::Range(range) => range,
            };
            let Some(figure) = self.figures.get_mut(name) else {
                return Err(InputError::new(name.as_str(), Fault::Unknown { kind: "parameter", name: name.clone() }));
            };
            if !range.is_ordered() {
                return Err(InputError::new(
                    name.as_str(),
                    Fault::Invalid(String::from("a range needs low ≤ expected ≤ high")),
                ));
            }
            (figure.low, figure.expected, figure.high) = (range.low, range.expected, range.high);
            figure.status = Status::User;
            figure.sources.clear();
        }
        Ok(self)
    }

    /// One parameter, with its source.
    ///
    /// # Errors
    /// A name that is no parameter.
    pub fn figure(&self, name: &str) -> Result<&Figure, InputError> {
        let unknown = || InputError::new(name, Fault::Unknown { kind: "parameter", name: String::from(name) });
        self.figures.get(name).ok_or_else(unknown)
    }

    /// The values of one parameter.
    ///
    /// # Errors
    /// See [`Parameters::figure`].
    pub fn range(&self, name: &str) -> Result<Range, InputError> {
        Ok(self.figure(name)?.range())
    }

    /// The expected value of one parameter.
    ///
    /// # Errors
    /// See [`Parameters::figure`].
    pub fn value(&self, name: &str) -> Result<u64, InputError> {
        Ok(self.figure(name)?.expected)
    }

    /// All parameters by name.
    pub fn figures(&self) -> impl Iterator<Item = (&str, &Figure)> {
        self.figures.iter().map(|(name, figure)| (name.as_str(), figure))
    }

    /// What a source key stands for.
    pub fn source(&self, key: &str) -> Option<&str> {
        self.sources.get(key).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn every_built_in_figure_is_ordered_and_sourced() {
        let table = Parameters::built_in().unwrap();
        for (name, figure) in table.figures() {
            assert!(figure.range().is_ordered(), "{name}");
            assert!(figure.status != Status::User, "{name}");
            assert!(!figure.note.is_empty(), "{name}");
            // What is measured or published says where; what is assumed says so.
            assert!(figure.status == Status::Assumed || !figure.sources.is_empty(), "{name}");
            for key in &figure.sources {
                assert!(table.source(key).is_some(), "{name}: {key}");
            }
        }
    }

    #[test]
    fn a_users_figure_replaces_the_built_in_one_and_says_so() {
        let name = "overhead.context_switch_us".to_string();
        let table = Parameters::built_in().unwrap();
        let table = table.with(&BTreeMap::from([(name.clone(), Override::Value(70))])).unwrap();
        assert_eq!(
            (table.range(&name).unwrap(), table.figure(&name).unwrap().status),
            (Range::exact(70), Status::User)
        );

        let error = table.clone().with(&BTreeMap::from([("nothing".to_string(), Override::Value(1))])).unwrap_err();
        assert_eq!((error.path(), error.fault().code()), ("nothing", "unknown_name"));
        let turned = Override::Range(Range { low: 2, expected: 1, high: 3 });
        let error = table.with(&BTreeMap::from([(name.clone(), turned)])).unwrap_err();
        assert_eq!((error.path(), error.fault().code()), (name.as_str(), "invalid"));
    }
}
