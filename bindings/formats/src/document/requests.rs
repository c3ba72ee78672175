//! Requests in their four forms: a document, a list, a single one, and CSV.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use slicewise_core::workload::Workload;

use super::envelope::Document;
use super::error::ReadError;
use super::locate::locate;
use super::text::{plain, read, strip_bom};

/// A workload whose name may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request(pub Workload);

impl<'de> Deserialize<'de> for Request {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Named;
        impl<'de> Visitor<'de> for Named {
            type Value = Request;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a request")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Request, A::Error> {
                let named = WithName { map, has_name: false, adds_name: false };
                Workload::deserialize(MapAccessDeserializer::new(named)).map(Request)
            }
        }
        deserializer.deserialize_map(Named)
    }
}

impl schemars::JsonSchema for Request {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Request".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = Workload::json_schema(generator);
        schema.remove("required");
        schema
    }
}

/// Adds an empty name after the last field of a request that has none, so that the
/// request's own type still reads it and reports the place of any fault.
struct WithName<A> {
    map: A,
    has_name: bool,
    adds_name: bool,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for WithName<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let mut seed = Some(seed);
        let key = KeySeed { seed: &mut seed, has_name: &mut self.has_name };
        if let Some(key) = self.map.next_key_seed(key)? {
            return Ok(Some(key));
        }
        match seed {
            Some(seed) if !self.has_name && !self.adds_name => {
                self.adds_name = true;
                seed.deserialize("name".into_deserializer()).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match self.adds_name {
            true => seed.deserialize("".into_deserializer()),
            false => self.map.next_value_seed(seed),
        }
    }
}

/// Looks at a key on its way to the request's own type. Errors of that type arise inside,
/// where the path of the field is still known.
struct KeySeed<'k, K> {
    seed: &'k mut Option<K>,
    has_name: &'k mut bool,
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for KeySeed<'_, K> {
    type Value = K::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<K::Value, D::Error> {
        let key = String::deserialize(deserializer)?;
        *self.has_name |= key == "name";
        match self.seed.take() {
            Some(seed) => seed.deserialize(key.into_deserializer()),
            None => Err(serde::de::Error::custom("a key was read twice")),
        }
    }
}

/// Reads a list of requests as workloads, names left empty where absent.
pub(super) fn unwrapped<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Workload>, D::Error> {
    Vec::<Request>::deserialize(deserializer).map(|list| list.into_iter().map(|r| r.0).collect())
}

/// Reads requests: a document with `requests`, a list, a single request, or CSV with the
/// header `profile,count` (and optionally `value` and `name`). Requests without a name
/// get `request-<n>`, counted from 1.
///
/// # Errors
/// A text that is none of these, or a name used twice, with line, column and field.
pub fn read_requests(name: &str, text: &str) -> Result<Vec<Workload>, ReadError> {
    if is_csv(text) {
        let (requests, lines) = read_csv(name, text)?;
        return unique(requests).map_err(|(index, message)| {
            let line = lines.get(index).copied().unwrap_or(1);
            ReadError::new(name, message).in_field("name").at(Some((line, 1)))
        });
    }
    match read::<Shape>(name, text)? {
        Shape::List => {
            let list: Vec<Request> = read(name, text)?;
            named(name, text, list.into_iter().map(|r| r.0).collect(), "")
        }
        Shape::Map(keys) if is_document(&keys) => {
            let document: Document = read(name, text)?;
            if !keys.iter().any(|k| k == "requests") {
                return Err(ReadError::new(name, "the document has no `requests`").at(locate(text, "")));
            }
            named(name, text, document.requests, "requests")
        }
        Shape::Map(_) => {
            let one: Request = read(name, text)?;
            Ok(unique(vec![one.0]).unwrap_or_default())
        }
    }
}

/// Names the nameless and refuses names used twice.
pub(super) fn named(file: &str, text: &str, requests: Vec<Workload>, prefix: &str) -> Result<Vec<Workload>, ReadError> {
    unique(requests).map_err(|(index, message)| {
        let path = format!("{prefix}[{index}].name");
        ReadError::new(file, message).at(locate(text, &path)).in_field(path)
    })
}

fn unique(mut requests: Vec<Workload>) -> Result<Vec<Workload>, (usize, String)> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, request) in requests.iter_mut().enumerate() {
        if request.name.is_empty() {
            request.name = format!("request-{}", index + 1);
        }
        if let Some(first) = seen.insert(request.name.clone(), index) {
            let message = format!("`{}` is already the name of request {}", request.name, first + 1);
            return Err((index, message));
        }
    }
    Ok(requests)
}

/// A document and a request share some field names: `nodes` alone is a document only
/// where nothing says what is asked.
fn is_document(keys: &[String]) -> bool {
    let has = |wanted: &[&str]| keys.iter().any(|k| wanted.contains(&k.as_str()));
    has(&["schema", "version", "requests", "gpus", "leases"])
        || (has(&["nodes", "models"]) && !has(&["name", "profile", "any_of", "count"]))
}

enum Shape {
    List,
    Map(Vec<String>),
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Look;
        impl<'de> Visitor<'de> for Look {
            type Value = Shape;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a document, a list of requests or a request")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Shape, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Shape::List)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
                let mut keys = Vec::new();
                while let Some((key, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
                    keys.push(key);
                }
                Ok(Shape::Map(keys))
            }
        }
        deserializer.deserialize_any(Look)
    }
}

const COLUMNS: [&str; 4] = ["profile", "count", "value", "name"];

/// A first line made of known column names, `profile` among them.
fn is_csv(text: &str) -> bool {
    let header = strip_bom(text).lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or_default();
    let cells: Vec<&str> = header.split(',').map(|c| c.trim().trim_matches('"')).collect();
    cells.contains(&"profile") && cells.iter().all(|c| COLUMNS.contains(c))
}

#[derive(Deserialize)]
struct Row {
    profile: String,
    count: Option<u32>,
    value: Option<u64>,
    name: Option<String>,
}

fn read_csv(file: &str, text: &str) -> Result<(Vec<Workload>, Vec<usize>), ReadError> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(strip_bom(text).as_bytes());
    let (mut requests, mut lines) = (Vec::new(), Vec::new());
    let headers = reader.headers().cloned().map_err(|e| csv_error(file, &e))?;
    for (record, number) in reader.records().zip(1..) {
        let record = record.map_err(|e| csv_error(file, &e))?;
        let row: Row = record.deserialize(Some(&headers)).map_err(|e| csv_error(file, &e))?;
        let line = record.position().map_or(1, |p| usize::try_from(p.line()).unwrap_or(usize::MAX));
        if row.profile.is_empty() {
            return Err(ReadError::new(file, "the row names no profile").in_field("profile").at(Some((line, 1))));
        }
        let name = row.name.filter(|n| !n.is_empty()).unwrap_or_else(|| format!("{number}-{}", row.profile));
        lines.push(line);
        requests.push(Workload {
            name,
            profile: Some(row.profile),
            count: row.count.unwrap_or(1),
            value: row.value,
            ..Workload::default()
        });
    }
    Ok((requests, lines))
}

/// The csv crate's messages name its own types; these name columns.
pub(crate) fn csv_error(file: &str, error: &csv::Error) -> ReadError {
    let line = error.position().map(|p| (usize::try_from(p.line()).unwrap_or(usize::MAX), 1));
    let (message, column) = match error.kind() {
        csv::ErrorKind::Deserialize { err, .. } => (plain(&err.kind().to_string()), err.field().map(|f| f + 1)),
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            (format!("the row has {len} cells, the header {expected_len}"), None)
        }
        _ => (error.to_string(), None),
    };
    let path = column.map_or(String::new(), |c| format!("column {c}"));
    ReadError::new(file, message).at(line).in_field(path)
}
