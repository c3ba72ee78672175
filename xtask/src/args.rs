//! What the command line asks for.

use std::path::PathBuf;

use crate::steps::{STEPS, Step, Tier};

/// A command line that was understood.
#[derive(Debug)]
pub enum Request {
    /// Print how to use xtask.
    Help,
    /// Build the C library for release and install it below this directory.
    Install(PathBuf),
    /// Run these steps in this order.
    Run(Run),
}

/// Steps to run.
#[derive(Debug)]
pub struct Run {
    /// In the order of the table, or as given when named one by one.
    pub steps: Vec<&'static Step>,
    /// Whether missing tools are installed; else their steps are skipped.
    pub install: bool,
}

/// Reads the arguments after `cargo xtask`.
///
/// # Errors
/// A message naming the word that is not known, or the tier that stands among steps.
pub fn parse<'a>(args: impl IntoIterator<Item = &'a str>) -> Result<Request, String> {
    let mut install = false;
    let mut prefix = None;
    let mut words = Vec::new();
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        match arg {
            "--prefix" => prefix = Some(args.next().ok_or("`--prefix` is followed by a directory")?),
            "help" | "-h" | "--help" => return Ok(Request::Help),
            "--install" => install = true,
            flag if flag.starts_with('-') => return Err(format!("unknown flag `{flag}`")),
            word => words.push(word),
        }
    }
    match (words.as_slice(), prefix) {
        (["install"], Some(prefix)) => return Ok(Request::Install(prefix.into())),
        (["install"], None) => return Err("`install` is followed by `--prefix DIR`".into()),
        (_, Some(_)) => return Err("`--prefix` belongs to `install`".into()),
        _ => {}
    }
    match words.as_slice() {
        [] => Ok(Request::Help),
        ["test"] => Ok(Request::Run(Run { steps: of_tier(Tier::Test), install })),
        ["ci"] => Ok(Request::Run(Run { steps: of_tier(Tier::Test), install: true })),
        ["full"] => Ok(Request::Run(Run { steps: of_tier(Tier::Full), install: true })),
        words => {
            let steps = words.iter().map(|word| by_name(word)).collect::<Result<_, _>>()?;
            Ok(Request::Run(Run { steps, install }))
        }
    }
}

/// The text of `cargo xtask help`.
pub fn usage() -> String {
    let mut text = String::from(
        "cargo xtask test [--install]     the default tier; without --install a check whose tool is missing is skipped\n\
         cargo xtask ci                   the same with --install\n\
         cargo xtask full                 everything, slow; implies --install\n\
         cargo xtask STEP... [--install]  single steps\n\
         cargo xtask install --prefix DIR the C library, built for release: include/, lib/, lib/pkgconfig/\n\nsteps:\n",
    );
    for step in STEPS {
        let tier = match step.tiers {
            [Tier::Full] => " (full only)",
            [] => " (in no tier)",
            _ => "",
        };
        text.push_str(&format!("  {:<11} {}{tier}\n", step.name, step.about));
    }
    text
}

fn of_tier(tier: Tier) -> Vec<&'static Step> {
    STEPS.iter().filter(|step| step.tiers.contains(&tier)).collect()
}

fn by_name(word: &str) -> Result<&'static Step, String> {
    if ["test", "ci", "full"].contains(&word) {
        return Err(format!("`{word}` is a tier and stands alone"));
    }
    STEPS.iter().find(|step| step.name == word).ok_or_else(|| format!("unknown step `{word}`"))
}

#[cfg(test)]
mod tests {
    use super::{Request, Run, parse, usage};
    use crate::steps::STEPS;

    fn run(line: &str) -> Run {
        match parse(line.split_whitespace()) {
            Ok(Request::Run(run)) => run,
            other => panic!("`{line}` gave {other:?}"),
        }
    }

    fn names(run: &Run) -> Vec<&str> {
        run.steps.iter().map(|step| step.name).collect()
    }

    fn error(line: &str) -> String {
        parse(line.split_whitespace()).err().unwrap_or_default()
    }

    #[test]
    fn test_installs_only_when_told() {
        assert!(!run("test").install);
        assert!(run("test --install").install);
    }

    #[test]
    fn ci_is_test_with_install() {
        assert_eq!(names(&run("ci")), names(&run("test")));
        assert!(run("ci").install);
    }

    #[test]
    fn full_holds_every_test_step_and_fuzzes_longer() {
        let full = run("full");
        assert!(full.install);
        for name in names(&run("test")) {
            assert!(names(&full).contains(&name) || name == "fuzz-smoke", "{name}");
        }
        for name in ["deny", "highs", "miri", "ir", "fuzz"] {
            assert!(names(&full).contains(&name), "{name}");
        }
    }

    #[test]
    fn every_tier_ends_with_the_test_runner() {
        for tier in ["test", "ci", "full"] {
            assert_eq!(names(&run(tier)).last(), Some(&"run-tests"));
        }
    }

    #[test]
    fn single_steps_run_as_given() {
        let picked = run("docs fmt");
        assert_eq!(names(&picked), ["docs", "fmt"]);
        assert!(!picked.install);
        assert!(run("miri --install").install);
    }

    #[test]
    fn what_is_not_known_is_named() {
        assert_eq!(error("clipy"), "unknown step `clipy`");
        assert_eq!(error("test --fast"), "unknown flag `--fast`");
        assert_eq!(error("fmt ci"), "`ci` is a tier and stands alone");
        assert_eq!(error("install"), "`install` is followed by `--prefix DIR`");
        assert_eq!(error("install --prefix"), "`--prefix` is followed by a directory");
        assert_eq!(error("fmt --prefix x"), "`--prefix` belongs to `install`");
    }

    #[test]
    fn install_has_a_prefix() {
        assert!(
            matches!(parse(["install", "--prefix", "/opt"]), Ok(Request::Install(prefix)) if prefix.ends_with("opt"))
        );
    }

    #[test]
    fn help_lists_each_step_once() {
        assert!(matches!(parse([]), Ok(Request::Help)));
        assert!(matches!(parse(["fmt", "--help"]), Ok(Request::Help)));
        for step in STEPS {
            assert_eq!(usage().matches(&format!("\n  {} ", step.name)).count(), 1, "{}", step.name);
        }
    }
}
