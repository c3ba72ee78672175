//! Newtype ids and the one vector that is indexed by them.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Index, IndexMut};

/// An id that counts up from zero inside its table.
pub trait Id: Copy + Ord {
    /// The id of position `index`.
    fn from_index(index: usize) -> Self;
    /// The position of this id.
    fn index(self) -> usize;
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($raw:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $raw);

        impl Id for $name {
            fn from_index(index: usize) -> Self {
                Self(<$raw>::try_from(index).unwrap_or(<$raw>::MAX))
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// A GPU of the fleet, in the order of the state document.
    GpuId(u32)
);
id!(
    /// A node of the fleet, in the order of the state document.
    NodeId(u32)
);
id!(
    /// A rack, in the order of the state document.
    RackId(u32)
);
id!(
    /// A kind of device: model, mode, driver rules and listing that GPUs share.
    SpecId(u16)
);
id!(
    /// A profile, by its position in the device kind's list.
    ProfileId(u16)
);
id!(
    /// An interned arrangement of instances on a grid.
    LayoutId(u32)
);
id!(
    /// A set of GPUs that are interchangeable for placement.
    ClassId(u32)
);

/// A vector indexed by its own id type. An id is only ever made by the table it
/// indexes, so a miss is corruption inside the engine and stops it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdVec<I, T> {
    items: Vec<T>,
    ids: PhantomData<I>,
}

impl<I, T> Default for IdVec<I, T> {
    fn default() -> Self {
        Self { items: Vec::new(), ids: PhantomData }
    }
}

impl<I: Id, T> IdVec<I, T> {
    /// Appends an item and returns its id.
    pub fn push(&mut self, item: T) -> I {
        let id = I::from_index(self.items.len());
        self.items.push(item);
        id
    }
    /// The number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }
    /// True when nothing was pushed.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
    /// The item, or `None` for an id of another table.
    pub fn lookup(&self, id: I) -> Option<&T> {
        self.items.get(id.index())
    }
    /// Items with their ids, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator {
        self.items.iter().enumerate().map(|(i, item)| (I::from_index(i), item))
    }
    /// All ids, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + use<I, T> {
        (0..self.items.len()).map(I::from_index)
    }
    /// The items as a slice.
    pub fn as_slice(&self) -> &[T] {
        &self.items
    }
}

impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;
    #[expect(clippy::indexing_slicing, reason = "ids are made by this table; a miss is corruption and must stop")]
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    #[expect(clippy::indexing_slicing, reason = "ids are made by this table; a miss is corruption and must stop")]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

impl<I: Id, T> FromIterator<T> for IdVec<I, T> {
    fn from_iter<It: IntoIterator<Item = T>>(iter: It) -> Self {
        Self { items: iter.into_iter().collect(), ids: PhantomData }
    }
}
