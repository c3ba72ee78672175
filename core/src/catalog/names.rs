//! Profile names. A name is how people say a profile, not what it is: drivers round
//! the gigabytes differently, so names are matched by their parts.

use super::Media;

/// The parts of a name such as `2c.3g.40gb+me`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameParts {
    /// Compute slices of the compute instance, where the name has one.
    pub compute_instance_slices: Option<u16>,
    /// Compute slices of the GPU instance.
    pub compute_slices: u16,
    /// The gigabytes in the name, a label.
    pub label_gb: u32,
    /// Media attribute.
    pub media: Media,
    /// Graphics attribute.
    pub gfx: bool,
}

/// Splits a MIG profile name; `None` if it has another shape.
pub fn parse_profile_name(name: &str) -> Option<NameParts> {
    let (compute_instance_slices, rest) = match name.split_once("c.") {
        Some((c, rest)) => (Some(c.parse().ok()?), rest),
        None => (None, name),
    };
    let (compute_slices, rest) = rest.split_once("g.")?;
    let (label, attributes) = rest.split_once("gb")?;
    let (media, gfx) = match attributes {
        "" => (Media::Default, false),
        "+me" => (Media::OneFullSet, false),
        "+me.all" => (Media::All, false),
        "-me" => (Media::None, false),
        "+gfx" => (Media::Default, true),
        _ => return None,
    };
    Some(NameParts {
        compute_instance_slices,
        compute_slices: compute_slices.parse().ok()?,
        label_gb: label.parse().ok()?,
        media,
        gfx,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_split_into_parts() {
        let parts = parse_profile_name("1c.3g.40gb").unwrap();
        assert_eq!((parts.compute_instance_slices, parts.compute_slices, parts.label_gb), (Some(1), 3, 40));
        assert_eq!(parse_profile_name("1g.24gb+me.all").unwrap().media, Media::All);
        assert_eq!(parse_profile_name("1g.24gb-me").unwrap().media, Media::None);
        assert!(parse_profile_name("2g.48gb+gfx").unwrap().gfx);
        for other in ["", "3g", "g.40gb", "3g.40gb+x", "a40-8q", "1g.gb"] {
            assert_eq!(parse_profile_name(other), None, "{other}");
        }
    }
}
