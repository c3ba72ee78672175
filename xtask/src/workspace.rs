//! What `cargo metadata` tells about the workspace, and what follows from it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;

/// Features that need a C++ tool chain: the default tier leaves them out, the `highs` step builds them.
const NATIVE: &str = "highs";

/// The workspace.
#[derive(Debug)]
pub struct Workspace {
    /// Where the top `Cargo.toml` lies.
    pub root: PathBuf,
    /// Where cargo builds.
    pub target_dir: PathBuf,
    /// The members, as listed by cargo.
    pub packages: Vec<Package>,
}

/// A member of the workspace.
#[derive(Debug)]
pub struct Package {
    /// As in its manifest.
    pub name: String,
    /// As in its manifest.
    pub version: String,
    /// Each feature with what it turns on.
    pub features: BTreeMap<String, Vec<String>>,
    /// Names of its bench targets.
    pub benches: Vec<String>,
}

impl Workspace {
    /// Reads the output of `cargo metadata --no-deps`; `None` if it lacks what every version of it has.
    pub fn from_json(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        Some(Self {
            root: value.get("workspace_root")?.as_str()?.into(),
            target_dir: value.get("target_directory")?.as_str()?.into(),
            packages: value.get("packages")?.as_array()?.iter().map(Package::from_json).collect::<Option<_>>()?,
        })
    }

    /// The member of that name.
    pub fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }
}

impl Package {
    fn from_json(value: &Value) -> Option<Self> {
        let strings =
            |list: &Value| Some(list.as_array()?.iter().filter_map(Value::as_str).map(String::from).collect());
        let features = value.get("features")?.as_object()?;
        let is_bench = |target: &&Value| target.get("kind").and_then(strings).is_some_and(|k: Vec<_>| k == ["bench"]);
        Some(Self {
            name: value.get("name")?.as_str()?.into(),
            version: value.get("version")?.as_str()?.into(),
            features: features.iter().map(|(name, on)| Some((name.clone(), strings(on)?))).collect::<Option<_>>()?,
            benches: (value.get("targets")?.as_array()?.iter().filter(is_bench))
                .filter_map(|target| Some(target.get("name")?.as_str()?.into()))
                .collect(),
        })
    }

    /// The sets of features to check one by one: none, each alone, all together.
    pub fn feature_sets(&self) -> Vec<Vec<&str>> {
        let native = self.native_features();
        let single: Vec<&str> = self
            .features
            .keys()
            .map(String::as_str)
            .filter(|name| *name != "default" && !native.contains(name))
            .collect();
        let mut sets = vec![Vec::new()];
        sets.extend(single.iter().map(|name| vec![*name]));
        if single.len() > 1 {
            sets.push(single);
        }
        sets
    }

    /// Features that turn on, straight or through others, what needs a C++ tool chain.
    pub fn native_features(&self) -> BTreeSet<&str> {
        let mut native = BTreeSet::new();
        loop {
            let before = native.len();
            for (name, on) in &self.features {
                if name == NATIVE || on.iter().any(|item| last_part(item) == NATIVE || native.contains(item.as_str())) {
                    native.insert(name.as_str());
                }
            }
            if native.len() == before {
                return native;
            }
        }
    }
}

/// The version that the lock file holds of a crate, from the output of `cargo metadata` with dependencies.
pub fn locked_version(metadata: &str, name: &str) -> Option<String> {
    let value: Value = serde_json::from_str(metadata).ok()?;
    let package = value.get("packages")?.as_array()?.iter().find(|p| p.get("name").is_some_and(|n| n == name))?;
    Some(package.get("version")?.as_str()?.into())
}

/// `highs` of `slicewise-solver/highs`, `dep:highs` or `highs`.
fn last_part(item: &str) -> &str {
    item.rsplit(['/', ':']).next().unwrap_or(item)
}

#[cfg(test)]
mod tests {
    use super::{Package, Workspace, locked_version};

    const METADATA: &str = r#"{
        "workspace_root": "/w", "target_directory": "/w/target",
        "packages": [
            {"name": "a", "version": "0.1.0", "features": {}, "targets": [{"kind": ["lib"], "name": "a"}]},
            {"name": "b", "version": "0.2.0",
             "features": {"default": ["std"], "std": [], "schema": ["dep:schemars"],
                          "highs": ["a/highs"], "native": ["fast"], "fast": ["c?/highs"]},
             "targets": [{"kind": ["bench"], "name": "ir"}, {"kind": ["test"], "name": "t"}]}
        ]
    }"#;

    fn package(name: &str) -> Package {
        let workspace = Workspace::from_json(METADATA).unwrap();
        workspace.packages.into_iter().find(|p| p.name == name).unwrap()
    }

    #[test]
    fn reads_root_and_benches() {
        let workspace = Workspace::from_json(METADATA).unwrap();
        assert_eq!(workspace.root.to_str(), Some("/w"));
        assert_eq!(workspace.package("b").unwrap().benches, ["ir"]);
        assert!(workspace.package("c").is_none());
    }

    #[test]
    fn no_feature_means_one_check() {
        assert_eq!(package("a").feature_sets(), [Vec::<&str>::new()]);
    }

    #[test]
    fn each_feature_alone_then_all_together_without_native_ones() {
        assert_eq!(package("b").feature_sets(), [vec![], vec!["schema"], vec!["std"], vec!["schema", "std"]]);
    }

    #[test]
    fn native_features_are_found_through_others() {
        assert_eq!(package("b").native_features().into_iter().collect::<Vec<_>>(), ["fast", "highs", "native"]);
    }

    #[test]
    fn finds_a_locked_version() {
        assert_eq!(locked_version(METADATA, "b").as_deref(), Some("0.2.0"));
        assert_eq!(locked_version(METADATA, "gungraun"), None);
    }

    #[test]
    fn other_output_is_none() {
        assert!(Workspace::from_json("{}").is_none());
        assert!(Workspace::from_json("error").is_none());
    }
}
