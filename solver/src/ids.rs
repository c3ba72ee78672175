//! Ids of the solver's own tables.

use slicewise_core::ids::Id;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl Id for $name {
            fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// A part: something of one device that a member needs.
    PartId
);
id!(
    /// A slot: what one kind of device can give a part.
    SlotId
);
id!(
    /// Members that are asked for alike.
    DemandId
);
id!(
    /// GPUs on which the same patterns fit.
    RoomId
);
id!(
    /// A column: a pattern on a room.
    ColumnId
);
id!(
    /// An inference model that is to be served.
    TargetId
);
id!(
    /// A base profile, by rising compute slices.
    SizeId
);
id!(
    /// A maximal multiset of base profiles.
    ShapeId
);
