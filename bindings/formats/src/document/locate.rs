//! Finds the place of a field in a text. JSON is read as YAML here: one walk over the
//! parser's events serves both and keeps no tree.

use serde_saphyr::granit_parser::{Event, Parser};

/// Line and column (from 1, in characters) of the value at `path`, a path such as
/// `nodes[0].gpus[1].model`. Where the field is absent, of its nearest existing ancestor;
/// `None` only for a text without any value.
pub fn locate(text: &str, path: &str) -> Option<(usize, usize)> {
    let mut walk = Walk { path: path.trim_start_matches('.'), stack: Vec::new(), best: None };
    for event in Parser::new_from_str(text) {
        // A text that breaks off later still has the fields before the break.
        let Ok((event, span)) = event else { break };
        let place = (span.start.line(), span.start.col() + 1);
        let done = match event {
            Event::Scalar(value, ..) => walk.leaf(&value, place),
            Event::Alias(..) | Event::UnresolvedAlias(..) => walk.leaf("", place),
            Event::MappingStart(..) => walk.open(place, Kind::Map { key: Key::Awaited }),
            Event::SequenceStart(..) => walk.open(place, Kind::List { next: 0 }),
            Event::MappingEnd | Event::SequenceEnd => walk.close(),
            Event::DocumentEnd => true,
            _ => false,
        };
        if done {
            break;
        }
    }
    walk.best
}

struct Walk<'p> {
    path: &'p str,
    stack: Vec<Open<'p>>,
    best: Option<(usize, usize)>,
}

/// A list or mapping that is being read.
struct Open<'p> {
    kind: Kind,
    /// What is left of the path below it; `None` where the path goes elsewhere.
    rest: Option<&'p str>,
}

enum Kind {
    Map { key: Key },
    List { next: usize },
}

enum Key {
    Awaited,
    Is(String),
    /// A key that is itself a list or mapping: no path names it.
    Complex,
}

impl<'p> Walk<'p> {
    fn leaf(&mut self, value: &str, place: (usize, usize)) -> bool {
        if let Some(Open { kind: Kind::Map { key: key @ Key::Awaited }, .. }) = self.stack.last_mut() {
            *key = Key::Is(value.to_owned());
            return false;
        }
        match self.enter() {
            Some(_) => {
                self.best = Some(place);
                true
            }
            None => self.stack.is_empty(),
        }
    }

    fn open(&mut self, place: (usize, usize), kind: Kind) -> bool {
        let rest = match self.stack.last_mut() {
            Some(Open { kind: Kind::Map { key: key @ Key::Awaited }, .. }) => {
                *key = Key::Complex;
                None
            }
            _ => self.enter(),
        };
        if rest.is_some() {
            self.best = Some(place);
        }
        self.stack.push(Open { kind, rest });
        rest.is_some_and(str::is_empty)
    }

    /// Past the last entry of a container on the path there is nothing nearer to find.
    fn close(&mut self) -> bool {
        let Some(closed) = self.stack.pop() else { return true };
        if let Some(Open { kind: Kind::Map { key: key @ Key::Complex }, .. }) = self.stack.last_mut() {
            *key = Key::Is(String::new());
        }
        closed.rest.is_some()
    }

    /// What is left of the path below the value that begins now.
    fn enter(&mut self) -> Option<&'p str> {
        let Some(parent) = self.stack.last_mut() else { return Some(self.path) };
        let rest = parent.rest;
        match &mut parent.kind {
            Kind::List { next } => {
                let index = *next;
                *next += 1;
                let (number, after) = rest?.strip_prefix('[')?.split_once(']')?;
                (number.parse() == Ok(index)).then(|| after.trim_start_matches('.'))
            }
            Kind::Map { key } => {
                let key = std::mem::replace(key, Key::Awaited);
                let Key::Is(name) = key else { return None };
                let after = rest?.strip_prefix(name.as_str())?;
                // Keys may hold dots, so the path is matched key by key, not split first.
                match after.chars().next() {
                    None | Some('[') => Some(after),
                    Some('.') => Some(after.trim_start_matches('.')),
                    Some(_) => None,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::locate;
    use rstest::rstest;

    const JSON: &str = "{\n \"version\": 3,\n \"nodes\": [\n  {\"name\": \"a\"},\n  {\"name\": \"ü\", \"gpus\": [{\"model\": \"x\"}]}\n ]\n}";
    const YAML: &str = "version: 3\nnodes:\n- name: a\n- name: b\n  labels:\n    nvidia.com/gpu: x\n  gpus:\n  - model: y\n  - mode: mig\n";

    #[rstest]
    #[case(JSON, "", (1, 1))]
    #[case(JSON, "version", (2, 13))]
    #[case(JSON, "nodes", (3, 11))]
    #[case(JSON, "nodes[1].gpus[0].model", (5, 36))]
    #[case(JSON, "nodes[1].gpus[7].model", (5, 25))]
    #[case(JSON, "nodes[9]", (3, 11))]
    #[case(JSON, "nothing.here", (1, 1))]
    #[case(YAML, "nodes[0].name", (3, 9))]
    #[case(YAML, "nodes[1].labels.nvidia.com/gpu", (6, 21))]
    #[case(YAML, "nodes[1].gpus[0].model", (8, 12))]
    #[case(YAML, "nodes[1].gpus[1].model", (9, 5))]
    #[case("- 1\n- [2, 3]\n", "[1][1]", (2, 7))]
    #[case("? [a]\n: 1\nb: 2\n", "b", (3, 4))]
    fn fields_are_found(#[case] text: &str, #[case] path: &str, #[case] place: (usize, usize)) {
        assert_eq!(locate(text, path), Some(place));
    }

    #[test]
    fn an_empty_text_has_no_place() {
        assert_eq!(locate("", "nodes"), None);
        assert_eq!(locate("a: 1\nb: ]\n", "a"), Some((1, 4)));
    }
}
