//! Handles: one thread at a time, and none after a panic.

use std::any::Any;
use std::cell::UnsafeCell;
use std::ffi::{CString, c_char};
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use slicewise::Code;

use crate::status::{Failure, Status};
use crate::text::owned;

/// A value that C holds by pointer. A second call at the same time is refused, not
/// undefined: a plugin's host may have more threads than its author knows of.
#[derive(Debug)]
pub struct Handle<T> {
    is_busy: AtomicBool,
    content: UnsafeCell<Content<T>>,
}

#[derive(Debug)]
struct Content<T> {
    is_poisoned: bool,
    error: CString,
    value: T,
}

// SAFETY: the content is reached only through `Locked`, of which there is one at a time.
unsafe impl<T: Send> Sync for Handle<T> {}

/// The only access to a handle, until it is dropped. Dropped by a panic, it poisons it.
struct Locked<'a, T>(&'a Handle<T>);

impl<T> Handle<T> {
    /// A handle on a value.
    pub fn new(value: T) -> Self {
        let content = Content { is_poisoned: false, error: CString::default(), value };
        Self { is_busy: AtomicBool::new(false), content: UnsafeCell::new(content) }
    }

    fn lock(&self) -> Result<Locked<'_, T>, Failure> {
        let locked = self.lock_even_poisoned().ok_or(Code::HandleBusy)?;
        if locked.is_poisoned { Err(Code::Poisoned.into()) } else { Ok(locked) }
    }

    /// Runs a call. What it says on failure is kept as the handle's last error.
    pub fn call(&self, body: impl FnOnce(&mut T) -> Result<(), Failure>) -> Status {
        let result = caught(|| {
            let mut locked = self.lock()?;
            if !locked.error.is_empty() {
                locked.error = CString::default();
            }
            body(&mut locked.value).inspect_err(|failure| locked.error = owned(failure.text.clone()))
        });
        result
            .unwrap_or_else(|panic| {
                if let Some(mut content) = self.lock_even_poisoned() {
                    content.error = owned(format!("panicked: {}", said(&*panic)));
                }
                Err(Code::Panicked.into())
            })
            .into()
    }

    /// Runs a call on two handles; the first keeps the error.
    pub fn call_with<U>(&self, other: &Handle<U>, body: impl FnOnce(&mut T, &mut U) -> Result<(), Failure>) -> Status {
        self.call(|value| body(value, &mut other.lock()?.value))
    }

    /// The text of the last failure; it stays until the next call. None while a call is running.
    pub fn last_error(&self) -> Option<*const c_char> {
        self.lock_even_poisoned().map(|content| content.error.as_ptr())
    }

    fn lock_even_poisoned(&self) -> Option<Locked<'_, T>> {
        if self.is_busy.swap(true, Ordering::Acquire) { None } else { Some(Locked(self)) }
    }
}

impl<T> Deref for Locked<'_, T> {
    type Target = Content<T>;
    fn deref(&self) -> &Content<T> {
        // SAFETY: `is_busy` lets one `Locked` be at a time.
        unsafe { &*self.0.content.get() }
    }
}

impl<T> DerefMut for Locked<'_, T> {
    fn deref_mut(&mut self) -> &mut Content<T> {
        // SAFETY: `is_busy` lets one `Locked` be at a time, and this borrows it alone.
        unsafe { &mut *self.0.content.get() }
    }
}

impl<T> Drop for Locked<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.is_poisoned = true;
        }
        self.0.is_busy.store(false, Ordering::Release);
    }
}

/// Runs code that must not unwind into C.
pub fn caught<R>(body: impl FnOnce() -> R) -> Result<R, Box<dyn Any + Send>> {
    catch_unwind(AssertUnwindSafe(body))
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    literal.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::Handle;
    use crate::status::{Failure, Status};
    use slicewise::Code;
    use std::ffi::CStr;

    fn add_one(value: &mut u32) -> Result<(), Failure> {
        *value += 1;
        Ok(())
    }

    fn last_error<T>(handle: &Handle<T>) -> String {
        // SAFETY: the text is the handle's, which no call is using.
        handle.last_error().map(|text| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()).unwrap()
    }

    #[test]
    fn keeps_the_last_error_until_the_next_call() {
        let handle = Handle::new(1);
        assert_eq!(handle.call(|_| Err(Failure::new(Code::Conflict, "no\0pe"))), Status::of(Code::Conflict));
        assert_eq!(last_error(&handle), "nope");
        assert_eq!(handle.call(add_one), Status::OK);
        assert_eq!(last_error(&handle), "");
    }

    #[test]
    fn is_poisoned_by_a_panic() {
        let (handle, other) = (Handle::new(1), Handle::new(2));
        assert_eq!(handle.call_with(&other, |_, _| panic!("odd {}", 7)), Status::of(Code::Panicked));
        assert_eq!(last_error(&handle), "panicked: odd 7");
        for poisoned in [&handle, &other] {
            assert_eq!(poisoned.call(|_| Ok(())), Status::of(Code::Poisoned));
        }
        assert_eq!(last_error(&handle), "panicked: odd 7");
    }

    #[test]
    fn refuses_a_second_call_at_the_same_time() {
        let handle = Handle::new(0);
        let status = handle.call(|_| {
            assert!(handle.last_error().is_none());
            assert_eq!(handle.call_with(&Handle::new(1), |_, _| Ok(())), Status::of(Code::HandleBusy));
            assert_eq!(handle.call_with(&handle, |_, _| Ok(())), Status::of(Code::HandleBusy));
            Ok(())
        });
        assert_eq!(status, Status::OK);
    }

    #[test]
    fn counts_every_call_that_two_threads_get_through() {
        let handle = Handle::new(0_u32);
        let work = || (0..50).filter(|_| handle.call(add_one) == Status::OK).count();
        let done = std::thread::scope(|scope| {
            let other = scope.spawn(work);
            work() + other.join().unwrap()
        });
        let mut counted = 0;
        let look = |value: &mut u32| {
            counted = *value as usize;
            Ok(())
        };
        assert_eq!((handle.call(look), counted), (Status::OK, done));
    }
}
