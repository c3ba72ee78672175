//! Files in, text out.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use serde::Serialize;
use slicewise::perf::timeshare::Timeshare;
use slicewise::{State, Workload, formats};

use crate::failure::Failure;

/// A text and where it is from.
#[derive(Clone, Debug)]
pub struct Text {
    /// Name of the file, or `standard input`.
    pub name: String,
    /// What is in it.
    pub content: String,
}

impl Text {
    /// Reads a file; `-` is standard input.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        if name == "-" {
            let mut content = String::new();
            let read = io::stdin().read_to_string(&mut content);
            return match read {
                Ok(_) => Ok(Self { name: "standard input".into(), content }),
                Err(e) => Err(Failure::io("standard input", &e)),
            };
        }
        match fs::read_to_string(path) {
            Ok(content) => Ok(Self { name, content }),
            Err(e) => Err(Failure::io(&name, &e)),
        }
    }

    /// The fleet in it.
    pub fn state(&self) -> Result<State, Failure> {
        formats::read_state(&self.name, &self.content).map_err(|e| Failure::read(self, &e))
    }

    /// The requests in it.
    pub fn requests(&self) -> Result<Vec<Workload>, Failure> {
        formats::read_requests(&self.name, &self.content).map_err(|e| Failure::read(self, &e))
    }

    /// How a GPU is shared in time.
    pub fn timeshare(&self) -> Result<Timeshare, Failure> {
        formats::read_timeshare(&self.name, &self.content).map_err(|e| Failure::read(self, &e))
    }

    /// A JSON value in it.
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, Failure> {
        formats::read(&self.name, &self.content).map_err(|e| Failure::read(self, &e))
    }
}

/// Prints text. A reader that has gone (`| head`) ends the program quietly.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(Failure::io("standard output", &e)),
        _ => Ok(()),
    }
}

/// Prints a value as indented JSON.
pub fn print_json<T: Serialize>(value: &T) -> Result<(), Failure> {
    match serde_json::to_string_pretty(value) {
        Ok(text) => print(&format!("{text}\n")),
        Err(e) => Err(Failure::plain(crate::failure::IO, e.to_string())),
    }
}

/// Prints to standard error; nothing can be done if that fails.
pub fn warn(text: &str) {
    let _ = writeln!(io::stderr(), "{}", text.trim_end());
}

/// Writes a file.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|e| Failure::io(&path.display().to_string(), &e))
}
