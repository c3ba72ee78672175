//! Structures that begin with their own size, so that they can grow.
//!
//! A caller sets `struct_size` to the size that the structure had when it was compiled. A
//! smaller one than ours is an older caller: what it does not have reads as zero and is not
//! written. A larger one is a newer caller: what we do not know must be zero in what we
//! read, and is written as zero.

use std::mem::{MaybeUninit, size_of};

use slicewise::Code;

use crate::status::Failure;

/// More than any structure will ever have: a size above it was not set by anyone.
const SIZE_MAX: usize = 4096;

/// A structure whose first field is `struct_size`.
///
/// # Safety
/// `#[repr(C)]`, begins with a `usize`, is valid when all bytes are zero and has no padding
/// that matters.
pub unsafe trait Structure: Copy {
    /// Its name in C.
    const NAME: &'static str;
    /// The size that it had first; it never had a smaller one.
    const SIZE_MIN: usize;
}

/// Reads a structure of the caller.
///
/// # Errors
/// A null pointer, or a size that no version has.
///
/// # Safety
/// Null, or aligned and readable for as many bytes as its `struct_size` says.
pub unsafe fn read<T: Structure>(from: *const T) -> Result<T, Failure> {
    // SAFETY: as the caller promises.
    let size = unsafe { size_at(from) }?;
    let mut value = MaybeUninit::<T>::zeroed();
    let known = size.min(size_of::<T>());
    // SAFETY: `known` bytes are readable there and writable here, and the two do not overlap.
    unsafe { from.cast::<u8>().copy_to_nonoverlapping(value.as_mut_ptr().cast::<u8>(), known) };
    // SAFETY: the bytes above the known ones are within the size that the caller gave.
    let is_zero = |at: usize| unsafe { from.cast::<u8>().add(at).read() } == 0;
    if !(known..size).all(is_zero) {
        let text = format!("`{}` sets a field that this version does not know", T::NAME);
        return Err(Failure::new(Code::WrongStructSize, text));
    }
    // SAFETY: all bytes are zero or the caller's, and `T` is valid with zeros by its contract.
    Ok(unsafe { value.assume_init() })
}

/// Writes a structure to the caller, all but its `struct_size`.
///
/// # Errors
/// A null pointer, or a size that no version has; nothing is written then.
///
/// # Safety
/// Null, or aligned and writable for as many bytes as its `struct_size` says.
pub unsafe fn write<T: Structure>(value: &T, to: *mut T) -> Result<(), Failure> {
    // SAFETY: as the caller promises.
    let size = unsafe { size_at(to) }?;
    let first = size_of::<usize>();
    let known = size.min(size_of::<T>());
    let (from, to) = (std::ptr::from_ref(value).cast::<u8>(), to.cast::<u8>());
    // SAFETY: both have `known` bytes, `first` is below it, and they do not overlap.
    unsafe { from.add(first).copy_to_nonoverlapping(to.add(first), known - first) };
    // SAFETY: these bytes are within the size that the caller gave.
    unsafe { to.add(known).write_bytes(0, size - known) };
    Ok(())
}

/// # Safety
/// Null, or aligned and readable for a `usize`.
unsafe fn size_at<T: Structure>(of: *const T) -> Result<usize, Failure> {
    if of.is_null() {
        return Err(Failure::new(Code::NullPointer, format!("`{}` is null", T::NAME)));
    }
    // SAFETY: the first field is a `usize`, by the contract of `Structure`.
    let size = unsafe { of.cast::<usize>().read() };
    if (T::SIZE_MIN..=SIZE_MAX).contains(&size) {
        return Ok(size);
    }
    let text = format!("`struct_size` of `{}` is {size}; set it to sizeof({0})", T::NAME);
    Err(Failure::new(Code::WrongStructSize, text))
}

#[cfg(test)]
mod tests {
    use super::{Structure, read, write};
    use slicewise::Code;
    use std::mem::size_of;

    use crate::status::Status;

    #[repr(C)]
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    struct Old {
        struct_size: usize,
        a: u64,
    }

    #[repr(C)]
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    struct New {
        struct_size: usize,
        a: u64,
        b: u64,
    }

    // SAFETY: integers after a `usize`.
    unsafe impl Structure for Old {
        const NAME: &'static str = "old";
        const SIZE_MIN: usize = size_of::<Old>();
    }
    // SAFETY: integers after a `usize`.
    unsafe impl Structure for New {
        const NAME: &'static str = "new";
        const SIZE_MIN: usize = size_of::<Old>();
    }

    #[test]
    fn an_older_caller_is_read_with_zeros() {
        let old = Old { struct_size: size_of::<Old>(), a: 7 };
        // SAFETY: as large as it says.
        let new = unsafe { read(std::ptr::from_ref(&old).cast::<New>()) }.unwrap();
        assert_eq!(new, New { struct_size: old.struct_size, a: 7, b: 0 });
    }

    #[test]
    fn a_newer_caller_sets_nothing_that_is_not_known() {
        for (b, expected) in [(0, Ok(7)), (1, Err(Status::of(Code::WrongStructSize)))] {
            let new = New { struct_size: size_of::<New>(), a: 7, b };
            // SAFETY: as large as it says.
            let old = unsafe { read(std::ptr::from_ref(&new).cast::<Old>()) };
            assert_eq!(old.map(|old| old.a).map_err(|failure| failure.status), expected);
        }
    }

    #[test]
    fn what_is_written_fits_the_caller() {
        let value = New { struct_size: 0, a: 1, b: 2 };
        let mut old = Old { struct_size: size_of::<Old>(), a: 0 };
        // SAFETY: as large as it says.
        unsafe { write(&value, std::ptr::from_mut(&mut old).cast()) }.unwrap();
        assert_eq!(old, Old { struct_size: size_of::<Old>(), a: 1 });
        let mut new = New { struct_size: size_of::<New>(), a: 9, b: 9 };
        // SAFETY: as large as it says.
        unsafe { write(&old, std::ptr::from_mut(&mut new).cast()) }.unwrap();
        assert_eq!(new, New { struct_size: size_of::<New>(), a: 1, b: 0 });
    }

    #[test]
    fn sizes_that_no_version_has_are_refused() {
        for struct_size in [0, size_of::<usize>(), size_of::<Old>() - 1, 5000, usize::MAX] {
            let mut old = Old { struct_size, a: 3 };
            // SAFETY: a size that is refused is not read further.
            let [read, written] = unsafe { [read(&raw const old).map(drop), write(&Old::default(), &raw mut old)] };
            for result in [read, written] {
                assert_eq!(result.unwrap_err().status, Status::of(Code::WrongStructSize));
            }
            assert_eq!(old.a, 3);
        }
        // SAFETY: null is allowed.
        assert_eq!(unsafe { read::<Old>(std::ptr::null()) }.unwrap_err().status, Status::of(Code::NullPointer));
    }
}
