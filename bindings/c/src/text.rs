//! Texts across the border.

use std::ffi::{CStr, CString, c_char};

use slicewise::Code;

use crate::status::Failure;

/// A text that the library lends: UTF-8, `length` bytes, no NUL at its end. The call that gives it says how
/// long it stays. An empty text has length 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// The first byte.
    pub data: *const c_char,
    /// How many bytes.
    pub length: usize,
}

impl Text {
    /// Lends a text; it must outlive the use that the caller may make of it.
    pub fn lent(text: &str) -> Self {
        Self { data: text.as_ptr().cast(), length: text.len() }
    }
}

/// A text of the caller.
///
/// # Errors
/// A null pointer, or bytes that are not UTF-8; `what` names the argument.
///
/// # Safety
/// Null, or a text that ends with a NUL and stays as it is while the result is used.
pub unsafe fn borrowed<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    // SAFETY: as the caller promises.
    match unsafe { optional(text, what) }? {
        Some(text) => Ok(text),
        None => Err(Failure::new(Code::NullPointer, format!("`{what}` is null"))),
    }
}

/// A text of the caller that may be missing.
///
/// # Errors
/// Bytes that are not UTF-8; `what` names the argument.
///
/// # Safety
/// See [`borrowed`].
pub unsafe fn optional<'a>(text: *const c_char, what: &str) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, and it ends with a NUL as the caller promises.
    let bytes = unsafe { CStr::from_ptr(text) };
    let text = bytes.to_str().map_err(|e| Failure::new(Code::NotUtf8, format!("`{what}` is not UTF-8: {e}")))?;
    Ok(Some(text))
}

/// A text as C has it; what cannot be in one, NUL, is left out.
pub fn owned(text: String) -> CString {
    let mut bytes = text.into_bytes();
    bytes.retain(|byte| *byte != 0);
    CString::new(bytes).unwrap_or_default()
}

/// Hands a text to the caller, who frees it with `slicewise_string_free`.
///
/// # Safety
/// `out` may be written, and is not null.
pub unsafe fn give(text: String, out: *mut *mut c_char) {
    // SAFETY: as the caller promises.
    unsafe { out.write(owned(text).into_raw()) };
}

/// Frees a text that the library gave. Null is nothing.
///
/// # Safety
/// `text` is null, or from a call that gives texts, and not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slicewise_string_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: it is from `CString::into_raw` in `give`, and freed once.
        drop(unsafe { CString::from_raw(text) });
    }
}

#[cfg(test)]
mod tests {
    use super::{borrowed, give, optional, slicewise_string_free};
    use slicewise::Code;
    use std::ffi::CStr;
    use std::ptr::{null, null_mut};

    use crate::status::Status;

    #[test]
    fn texts_come_in() {
        // SAFETY: null, or literals that end with a NUL.
        unsafe {
            assert_eq!(borrowed(c"n1".as_ptr(), "node").unwrap(), "n1");
            assert_eq!(optional(null(), "node").unwrap(), None);
            assert_eq!(borrowed(null(), "node").unwrap_err().text, "`node` is null");
            assert_eq!(borrowed(c"\xff".as_ptr(), "node").unwrap_err().status, Status::of(Code::NotUtf8));
        }
    }

    #[test]
    fn texts_go_out_and_are_freed() {
        let mut out = null_mut();
        // SAFETY: `out` is writable, is read while it lives, and is freed once.
        unsafe {
            give("a\0b".into(), &raw mut out);
            assert_eq!(CStr::from_ptr(out), c"ab");
            slicewise_string_free(out);
            slicewise_string_free(null_mut());
        }
    }
}
