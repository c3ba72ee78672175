//! From the typed request to the engine's own, in place: the texts of the last request are
//! written over, so that a decision on the hot path allocates nothing for it.

use slicewise::workload::{Fraction, MpsShare, Operator, Requirement, WholeGpus};
use slicewise::{Ask, Fault, Workload};

use crate::status::Failure;
use crate::text::{borrowed, optional};
use crate::types::{AskKind, Flags, Request};

/// The name of a node as a label.
const NODE_NAME: &str = "slicewise/name";
const FLAGS_ALL: u32 = Flags::AllowMoves as u32 | Flags::Pinned as u32 | Flags::KeepIdle as u32 | Flags::Queue as u32;

impl Request {
    /// Writes the request over `workload`, which holds nothing or an earlier one.
    ///
    /// # Errors
    /// A text that is missing or not UTF-8, or a number out of its range, with the field.
    ///
    /// # Safety
    /// The texts are null or end with a NUL.
    pub unsafe fn write_to(&self, workload: &mut Workload) -> Result<(), Failure> {
        // SAFETY: as the caller promises; the texts are copied before this returns.
        let [tenant, node] = unsafe { [optional(self.tenant, "tenant")?, optional(self.node, "node")?] };
        // SAFETY: as above.
        set(&mut workload.name, unsafe { borrowed(self.name, "name") }?);
        set_optional(&mut workload.tenant, tenant);
        set_node(&mut workload.nodes, node);
        // SAFETY: as above.
        unsafe { self.write_ask(workload) }?;
        workload.count = self.count.max(1);
        (workload.cpu_milli, workload.memory_mib) = (self.cpu_milli, self.memory_mib);
        if self.flags & !FLAGS_ALL != 0 {
            return Err(out_of_range("flags", self.flags, FLAGS_ALL));
        }
        let is_set = |flag: Flags| self.flags & flag as u32 != 0;
        workload.allow_moves = is_set(Flags::AllowMoves);
        workload.pinned = is_set(Flags::Pinned);
        workload.keep_idle = is_set(Flags::KeepIdle);
        workload.queue = is_set(Flags::Queue);
        Ok(())
    }

    /// # Safety
    /// See [`Request::write_to`].
    unsafe fn write_ask(&self, workload: &mut Workload) -> Result<(), Failure> {
        workload.any_of.clear();
        if self.ask == AskKind::Profile as u32 {
            // SAFETY: as the caller promises.
            set_optional(&mut workload.profile, Some(unsafe { borrowed(self.profile, "profile") }?));
            return Ok(());
        }
        workload.profile = None;
        let ask = if self.ask == AskKind::Fraction as u32 {
            let milli = small("milli", self.milli)?;
            Ask::Fraction(Fraction { milli, memory_mib: self.gpu_memory_mib, memory_ppm: None })
        } else if self.ask == AskKind::Gpus as u32 {
            let memory_mib = (self.gpu_memory_mib > 0).then_some(self.gpu_memory_mib);
            Ask::Gpus(WholeGpus { count: self.gpus, memory_mib, ..WholeGpus::default() })
        } else if self.ask == AskKind::Mps as u32 {
            let threads_percent = small("threads_percent", self.threads_percent)?;
            let contexts = small("contexts", self.contexts.max(1))?;
            let memory_mib = self.gpu_memory_mib;
            Ask::Mps(MpsShare { threads_percent, memory_mib, contexts, ..MpsShare::default() })
        } else {
            return Err(out_of_range("ask", self.ask, AskKind::Mps as u32));
        };
        workload.any_of.push(ask);
        Ok(())
    }
}

fn set(to: &mut String, text: &str) {
    to.clear();
    to.push_str(text);
}

fn set_optional(to: &mut Option<String>, text: Option<&str>) {
    match text {
        Some(text) => set(to.get_or_insert_default(), text),
        None => *to = None,
    }
}

fn set_node(nodes: &mut Vec<Requirement>, name: Option<&str>) {
    let Some(name) = name else { return nodes.clear() };
    if nodes.is_empty() {
        nodes.push(Requirement { key: NODE_NAME.into(), operator: Operator::In, values: vec![String::new()] });
    }
    if let Some(value) = nodes.first_mut().and_then(|requirement| requirement.values.first_mut()) {
        set(value, name);
    }
}

fn small(field: &str, value: u32) -> Result<u16, Failure> {
    u16::try_from(value).map_err(|_| out_of_range(field, value, u16::MAX.into()))
}

fn out_of_range(field: &str, value: u32, max: u32) -> Failure {
    Failure::input(field, Fault::OutOfRange { value: value.into(), min: 0, max: max.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Status;
    use slicewise::Code;
    use std::ptr::null;

    fn request() -> Request {
        // SAFETY: a request may be all zeros.
        let zero: Request = unsafe { std::mem::zeroed() };
        Request { name: c"a".as_ptr(), profile: c"3g.40gb".as_ptr(), node: c"n1".as_ptr(), ..zero }
    }

    fn written(request: &Request, workload: &mut Workload) -> Status {
        // SAFETY: the texts are literals, or null.
        unsafe { request.write_to(workload) }.into()
    }

    #[test]
    fn leaves_nothing_of_the_one_before() {
        let (mut fresh, mut used) = (Workload::default(), Workload::default());
        let rich = Request { tenant: c"t".as_ptr(), cpu_milli: 5, count: 3, flags: 15, ..request() };
        let fraction = Request { ask: AskKind::Fraction as u32, milli: 5, node: null(), ..request() };
        for before in [&rich, &fraction] {
            assert_eq!(written(before, &mut used), Status::OK);
        }
        assert_eq!(written(&request(), &mut used), Status::OK);
        assert_eq!(written(&request(), &mut fresh), Status::OK);
        assert_eq!(used, fresh);
        assert_eq!((fresh.count, fresh.profile.as_deref()), (1, Some("3g.40gb")));
        assert_eq!(fresh.nodes.first().map(|node| node.values.clone()), Some(vec!["n1".into()]));
    }

    #[test]
    fn writes_over_texts_without_taking_memory_anew() {
        let mut workload = Workload::default();
        assert_eq!(written(&request(), &mut workload), Status::OK);
        let at = |workload: &Workload| (workload.name.as_ptr(), workload.profile.as_ref().map(|text| text.as_ptr()));
        let before = at(&workload);
        let other = Request { name: c"b".as_ptr(), profile: c"1g.10gb".as_ptr(), ..request() };
        assert_eq!(written(&other, &mut workload), Status::OK);
        assert_eq!((at(&workload), workload.name.as_str()), (before, "b"));
    }

    #[test]
    fn refuses_what_is_out_of_range() {
        let wrong = [
            (Request { name: null(), ..request() }, Code::NullPointer.number()),
            (Request { profile: null(), ..request() }, Code::NullPointer.number()),
            (Request { tenant: c"\xff".as_ptr(), ..request() }, Code::NotUtf8.number()),
            (Request { ask: 4, ..request() }, 909),
            (Request { ask: AskKind::Fraction as u32, milli: 70_000, ..request() }, 909),
            (Request { flags: 16, ..request() }, 909),
        ];
        for (request, number) in wrong {
            assert_eq!(written(&request, &mut Workload::default()), Status(number.into()), "{request:?}");
        }
    }
}
