//! What the steps share: where things lie, how commands are run, how tools are got.

use std::cell::Cell;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::command::Cmd;
use crate::say;
use crate::workspace::Workspace;

/// Why a step did not pass.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop {
    /// What it needs is not here; the text says how to get it.
    Skip(String),
    /// It failed.
    Fail {
        /// What happened.
        what: String,
        /// The command to repeat, where one command failed.
        repeat: Option<String>,
    },
}

impl Stop {
    /// A failure that has no command.
    pub fn fail(what: impl Into<String>) -> Self {
        Self::Fail { what: what.into(), repeat: None }
    }

    /// For a check that is only wished for: what could not be got is left out.
    pub fn or_skip(self) -> Self {
        match self {
            Self::Fail { what, repeat } => Self::Skip(match repeat {
                Some(repeat) => format!("{what}: {repeat}"),
                None => what,
            }),
            skip => skip,
        }
    }
}

/// What a run of steps works with.
#[derive(Debug)]
pub struct Context {
    /// The workspace.
    pub workspace: Workspace,
    install: bool,
    apt_updated: Cell<bool>,
}

impl Context {
    /// Asks cargo for the workspace around the current directory.
    ///
    /// # Errors
    /// When a manifest cannot be read; cargo has printed why.
    pub fn new(install: bool) -> Result<Self, Stop> {
        let cmd = Cmd::words("cargo metadata --format-version 1 --no-deps");
        let output = Command::new(&cmd.program).args(&cmd.args).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
        let stop = |what| Stop::Fail { what, repeat: Some(cmd.to_string()) };
        let output = output.map_err(|error| stop(format!("`cargo` cannot be run: {error}")))?;
        let workspace = Workspace::from_json(&String::from_utf8_lossy(&output.stdout))
            .ok_or_else(|| stop("the workspace cannot be read".into()))?;
        Ok(Self { workspace, install, apt_updated: Cell::new(false) })
    }

    /// A path below the root of the workspace.
    pub fn at(&self, path: &str) -> PathBuf {
        self.workspace.root.join(path)
    }

    /// A path below the target directory, short if that lies in the workspace.
    pub fn in_target(&self, path: &str) -> String {
        let full = self.workspace.target_dir.join(path);
        full.strip_prefix(&self.workspace.root).unwrap_or(&full).to_string_lossy().into_owned()
    }

    /// Runs a command, its output going where ours goes.
    ///
    /// # Errors
    /// A failure with the command to repeat.
    pub fn run(&self, cmd: &Cmd) -> Result<(), Stop> {
        say(&format!("  $ {}", self.shown(cmd)));
        match self.process(cmd).status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(self.stop(cmd, format!("`{}` ended with {status}", cmd.program))),
            Err(error) => Err(self.stop(cmd, format!("`{}` cannot be run: {error}", cmd.program))),
        }
    }

    /// Runs a command and returns what it printed on standard output.
    ///
    /// # Errors
    /// A failure with the command to repeat.
    pub fn output(&self, cmd: &Cmd) -> Result<String, Stop> {
        match self.process(cmd).stderr(Stdio::inherit()).output() {
            Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            Ok(output) => Err(self.stop(cmd, format!("`{}` ended with {}", cmd.program, output.status))),
            Err(error) => Err(self.stop(cmd, format!("`{}` cannot be run: {error}", cmd.program))),
        }
    }

    /// What a command prints on standard output if it is there and succeeds, without a word about it.
    pub fn probe(&self, cmd: &Cmd) -> Option<String> {
        let output = self.process(cmd).stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Whether a program is there.
    pub fn has(&self, line: &str) -> bool {
        self.probe(&Cmd::words(line)).is_some()
    }

    /// Makes sure that a tool is there: nothing to do when `present`, else installed or the step is skipped.
    ///
    /// # Errors
    /// A skip that says how to install, or the failure of the installation.
    pub fn need(&self, tool: &str, present: impl Fn() -> bool, install: &[Cmd]) -> Result<(), Stop> {
        if present() {
            return Ok(());
        }
        let how: Vec<String> = install.iter().map(Cmd::to_string).collect();
        let how = how.join(" && ");
        if !self.install {
            return Err(Stop::Skip(format!("needs {tool}: {how}")));
        }
        for cmd in install {
            if cmd.program == "apt-get" && !self.apt_updated.replace(true) {
                self.run(&apt("update"))?;
            }
            self.run(cmd)?;
        }
        if present() { Ok(()) } else { Err(Stop::fail(format!("{tool}: still missing after {how}"))) }
    }

    /// `cargo install` into the target directory; [`Context::run`] looks there first.
    pub fn cargo_install(&self, package: &str, version: &str) -> Cmd {
        Cmd::words("cargo install --locked --root").arg(self.in_target("tools")).arg(format!("{package}@{version}"))
    }

    /// A command as it is printed: with the tools of [`Context::cargo_install`] in its `PATH` where it needs one.
    fn shown(&self, cmd: &Cmd) -> String {
        if cmd.uses_tools && self.tools_dir().is_dir() {
            return format!("PATH={}:\"$PATH\" {cmd}", self.in_target("tools/bin"));
        }
        cmd.to_string()
    }

    fn stop(&self, cmd: &Cmd, what: impl Into<String>) -> Stop {
        Stop::Fail { what: what.into(), repeat: Some(self.shown(cmd)) }
    }

    fn process(&self, cmd: &Cmd) -> Command {
        let mut process = Command::new(&cmd.program);
        process.args(&cmd.args).current_dir(&self.workspace.root).stdin(Stdio::null());
        // What `cargo run` tells about xtask must not reach the builds that xtask starts.
        for (key, _) in env::vars_os().filter(|(key, _)| is_about_xtask(&key.to_string_lossy())) {
            process.env_remove(key);
        }
        process.env("PATH", self.path());
        process.envs(cmd.env.iter().map(|(key, value)| (key, value)));
        process
    }

    fn tools_dir(&self) -> PathBuf {
        self.workspace.target_dir.join("tools").join("bin")
    }

    fn path(&self) -> OsString {
        let old = env::var_os("PATH").unwrap_or_default();
        if !self.tools_dir().is_dir() {
            return old;
        }
        env::join_paths([self.tools_dir()].into_iter().chain(env::split_paths(&old))).unwrap_or(old)
    }
}

/// An `apt-get` command that waits for the lock and asks nothing.
pub fn apt(what: &str) -> Cmd {
    Cmd::words(&format!("apt-get -y -o DPkg::Lock::Timeout=120 {what}")).env("DEBIAN_FRONTEND", "noninteractive")
}

/// Whether the standard library of a target is installed, with or without rustup.
pub fn has_target(context: &Context, target: &str) -> bool {
    let dir = context.probe(&Cmd::words(&format!("rustc --print target-libdir --target {target}")));
    dir.is_some_and(|dir| Path::new(dir.trim()).is_dir())
}

fn is_about_xtask(key: &str) -> bool {
    key.starts_with("CARGO_PKG_") || key.starts_with("CARGO_MANIFEST_") || key.starts_with("CARGO_BIN_")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::{Context, Stop, apt, is_about_xtask};
    use crate::command::Cmd;
    use crate::workspace::Workspace;

    fn context(install: bool) -> Context {
        let root = std::env::temp_dir();
        let workspace = Workspace { target_dir: root.join("target"), root, packages: Vec::new() };
        Context { workspace, install, apt_updated: Cell::new(false) }
    }

    #[test]
    fn what_is_present_is_not_installed() {
        let broken = Cmd::words("no-such-program-here");
        assert_eq!(context(true).need("x", || true, &[broken]), Ok(()));
    }

    #[test]
    fn a_missing_tool_is_skipped_with_the_way_to_get_it() {
        let skip = context(false).need("cmake", || false, &[apt("install cmake"), Cmd::words("cargo x")]);
        let Err(Stop::Skip(text)) = skip else { panic!("{skip:?}") };
        assert!(text.starts_with("needs cmake: DEBIAN_FRONTEND=noninteractive apt-get -y"), "{text}");
        assert!(text.ends_with("install cmake && cargo x"), "{text}");
    }

    #[test]
    fn a_failed_installation_fails_and_can_be_made_a_skip() {
        let stop = context(true).need("x", || false, &[Cmd::words("no-such-program-here --now")]).unwrap_err();
        assert!(matches!(&stop, Stop::Fail { repeat: Some(line), .. } if line == "no-such-program-here --now"));
        assert!(matches!(stop.or_skip(), Stop::Skip(text) if text.ends_with(": no-such-program-here --now")));
    }

    #[test]
    fn an_installation_that_brings_nothing_fails() {
        let stop = context(true).need("x", || false, &[Cmd::words("cargo --version")]);
        assert_eq!(stop, Err(Stop::fail("x: still missing after cargo --version")));
    }

    #[test]
    fn a_failed_command_names_itself() {
        let stop = context(false).run(&Cmd::words("cargo no-such-subcommand").env("A", "b c")).unwrap_err();
        let Stop::Fail { what, repeat } = stop else { panic!("{stop:?}") };
        assert!(what.starts_with("`cargo` ended with exit status"), "{what}");
        assert_eq!(repeat.as_deref(), Some("A='b c' cargo no-such-subcommand"));
    }

    #[test]
    fn tools_lie_in_the_target_directory() {
        assert_eq!(context(true).in_target("tools"), "target/tools");
        let cmd = context(true).cargo_install("cargo-fuzz", "0.13.2").to_string();
        assert_eq!(cmd, "cargo install --locked --root target/tools cargo-fuzz@0.13.2");
    }

    #[test]
    fn only_what_is_about_xtask_is_kept_from_builds() {
        assert!(is_about_xtask("CARGO_PKG_NAME") && is_about_xtask("CARGO_MANIFEST_DIR"));
        assert!(!is_about_xtask("CARGO_TARGET_DIR") && !is_about_xtask("CARGO_HOME"));
    }
}
