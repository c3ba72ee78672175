//! Case files: a state, and steps with what must come out. The same files run through
//! every surface.

use serde::Deserialize;
use serde_json::{Map, Value};
use slicewise::{CommitError, Decision, Engine, Error, Verdict, Workload, formats, verify};
use std::collections::{BTreeMap, BTreeSet};

/// A case file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What it shows.
    pub note: String,
    /// The state document.
    pub state: Value,
    /// What is done and what must come out.
    pub steps: Vec<Step>,
}

/// One step; exactly one of the first five says what is done.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// Decide and change nothing.
    pub decide: Option<Value>,
    /// Decide and commit; the verdict must be `admit`.
    pub admit: Option<Value>,
    /// Decide and commit a request this many times under different names.
    pub admit_each: Option<Each>,
    /// Commit the decision remembered under this name.
    pub commit: Option<String>,
    /// End a lease.
    pub release: Option<String>,
    /// Remember the decision under this name.
    #[serde(rename = "as")]
    pub remember: Option<String>,
    /// What the answer must hold at least.
    pub expect: Option<Value>,
    /// The error that must come instead of an answer: code and path.
    pub error: Option<Map<String, Value>>,
    /// The commit must be refused as a conflict.
    pub conflict: bool,
    /// The version afterwards.
    pub version: Option<u64>,
    /// How many different GPUs the requests of `admit_each` must be on.
    pub distinct_gpus: Option<usize>,
}

/// A request to repeat.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Each {
    /// How often.
    pub count: usize,
    /// The request, without its name.
    pub request: Value,
}

/// Runs a case through the Rust API.
pub fn run(text: &str) -> Result<(), String> {
    let case: Case = formats::read("case", text).map_err(|e| e.to_string())?;
    let state = formats::read_state("state", &case.state.to_string()).map_err(|e| e.to_string())?;
    let engine = Engine::new(&state).map_err(|e| e.to_string())?;
    let mut runner = Runner { engine, remembered: BTreeMap::new(), named: 0 };
    for (i, step) in case.steps.iter().enumerate() {
        runner.step(step).map_err(|e| format!("step {i}: {e}"))?;
    }
    Ok(())
}

/// Reads one request.
pub fn request(value: &Value) -> Result<Workload, String> {
    let mut all = formats::read_requests("request", &value.to_string()).map_err(|e| e.to_string())?;
    all.pop().ok_or_else(|| "no request".to_string())
}

/// A decision and its explanation as one JSON value: what every surface gives.
pub fn answer(engine: &Engine, workload: &Workload, decision: &Decision) -> Result<Value, String> {
    let mut value = serde_json::to_value(decision).map_err(|e| e.to_string())?;
    let explanation = engine.explain(workload).map_err(|e| e.to_string())?;
    if let Value::Object(map) = &mut value {
        map.insert("remedies".into(), serde_json::to_value(explanation.remedies).map_err(|e| e.to_string())?);
        if !explanation.conflict.is_empty() {
            map.insert("conflict".into(), explanation.conflict.into());
        }
    }
    Ok(value)
}

struct Runner {
    engine: Engine,
    remembered: BTreeMap<String, (Workload, Decision)>,
    named: usize,
}

impl Runner {
    fn step(&mut self, step: &Step) -> Result<(), String> {
        if let Some(value) = step.decide.as_ref().or(step.admit.as_ref()) {
            self.decide(step, &request(value)?)?;
        } else if let Some(each) = &step.admit_each {
            self.admit_each(step, each)?;
        } else if let Some(name) = &step.commit {
            let (workload, decision) = self.remembered.get(name).cloned().ok_or("nothing remembered")?;
            match self.engine.commit(&workload, &decision) {
                Ok(_) if step.conflict => return Err("expected a conflict".into()),
                Err(Error::Commit(CommitError::Conflict { .. })) if step.conflict => {}
                other => drop(other.map_err(|e| e.to_string())?),
            }
        } else if let Some(name) = &step.release {
            self.engine.release(name).map_err(|e| e.to_string())?;
        } else {
            return Err("says nothing to do".into());
        }
        match step.version {
            Some(version) if version != self.engine.version() => {
                Err(format!("version is {}, expected {version}", self.engine.version()))
            }
            _ => Ok(()),
        }
    }

    fn decide(&mut self, step: &Step, workload: &Workload) -> Result<(), String> {
        let before = self.engine.snapshot();
        let decision = match (self.engine.decide(workload), &step.error) {
            (Ok(decision), None) => decision,
            (Err(Error::Input(e)), Some(expected)) => {
                let actual = serde_json::json!({ "code": e.fault().code(), "path": e.path() });
                return contains(&Value::Object(expected.clone()), &actual, "error");
            }
            (Ok(_), Some(_)) => return Err("expected an error".into()),
            (Err(e), _) => return Err(e.to_string()),
        };
        let actual = answer(&self.engine, workload, &decision)?;
        if self.engine.snapshot() != before {
            return Err("deciding changed the state".into());
        }
        verify::decision(self.engine.ledger().catalog(), &before, workload, &decision, false)
            .map_err(|violation| format!("the checker refuses it: {violation}"))?;
        if let Some(expected) = &step.expect {
            contains(expected, &actual, "answer")?;
        }
        if let Some(name) = &step.remember {
            self.remembered.insert(name.clone(), (workload.clone(), decision.clone()));
        }
        if step.admit.is_some() {
            self.commit(workload, &decision, &actual)?;
        }
        Ok(())
    }

    fn commit(&mut self, workload: &Workload, decision: &Decision, actual: &Value) -> Result<(), String> {
        if decision.verdict != Verdict::Admit {
            return Err(format!("not admitted: {actual:#}"));
        }
        self.engine.commit(workload, decision).map(|_| ()).map_err(|e| e.to_string())
    }

    fn admit_each(&mut self, step: &Step, each: &Each) -> Result<(), String> {
        let mut gpus = BTreeSet::new();
        for _ in 0..each.count {
            let mut workload = request(&each.request)?;
            workload.name = format!("each-{}", self.named);
            self.named += 1;
            let decision = self.engine.decide(&workload).map_err(|e| e.to_string())?;
            let actual = serde_json::to_value(&decision).map_err(|e| e.to_string())?;
            if let Some(expected) = &step.expect {
                contains(expected, &actual, "answer")?;
            }
            gpus.extend(decision.placements.iter().map(|p| (p.node.clone(), p.gpu)));
            self.commit(&workload, &decision, &actual)?;
        }
        match step.distinct_gpus {
            Some(count) if count != gpus.len() => Err(format!("on {} GPUs, expected {count}", gpus.len())),
            _ => Ok(()),
        }
    }
}

/// Whether `actual` has everything that `expected` says: keys of objects, and lists of the
/// same length entry by entry. An expected list of remedies may be shorter.
pub fn contains(expected: &Value, actual: &Value, path: &str) -> Result<(), String> {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(map)) => expected.iter().try_for_each(|(key, value)| {
            let path = format!("{path}.{key}");
            match map.get(key) {
                Some(actual) => contains(value, actual, &path),
                None => Err(format!("{path} is missing; there is {}", Value::Object(map.clone()))),
            }
        }),
        (Value::Array(expected), Value::Array(list)) => {
            let open = path.ends_with(".remedies");
            if expected.len() > list.len() || (!open && expected.len() != list.len()) {
                let list = Value::Array(list.clone());
                return Err(format!("{path} has other entries than the {} expected: {list:#}", expected.len()));
            }
            let mut pairs = expected.iter().zip(list).enumerate();
            pairs.try_for_each(|(i, (e, a))| contains(e, a, &format!("{path}[{i}]")))
        }
        _ if expected == actual => Ok(()),
        _ => Err(format!("{path} is {actual}, expected {expected}")),
    }
}
