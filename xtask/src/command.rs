//! A command that can be run and also printed in a form that a shell accepts.

use std::fmt;

/// A program with its arguments and the environment it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cmd {
    /// Looked up in `PATH`.
    pub program: String,
    /// As the program gets them.
    pub args: Vec<String>,
    /// Set on top of the environment of xtask.
    pub env: Vec<(String, String)>,
    /// Whether it needs a tool that xtask may have installed into the target directory.
    pub uses_tools: bool,
}

impl Cmd {
    /// A command from words that hold no blanks themselves.
    pub fn words(line: &str) -> Self {
        let mut words = line.split_whitespace().map(String::from);
        Self { program: words.next().unwrap_or_default(), args: words.collect(), env: Vec::new(), uses_tools: false }
    }

    /// Adds one argument, blanks and all.
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Says that it needs a tool of xtask's own.
    pub fn with_tools(mut self) -> Self {
        self.uses_tools = true;
        self
    }

    /// Sets a variable.
    pub fn env(mut self, key: &str, value: impl Into<String>) -> Self {
        self.env.push((key.into(), value.into()));
        self
    }
}

impl fmt::Display for Cmd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, value) in &self.env {
            write!(f, "{key}={} ", quoted(value))?;
        }
        write!(f, "{}", quoted(&self.program))?;
        for arg in &self.args {
            write!(f, " {}", quoted(arg))?;
        }
        Ok(())
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,@%^".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::Cmd;

    #[test]
    fn prints_what_a_shell_reads_back() {
        let cmd = Cmd::words("cargo doc --no-deps").env("RUSTDOCFLAGS", "-D warnings").arg("it's");
        assert_eq!(cmd.to_string(), r"RUSTDOCFLAGS='-D warnings' cargo doc --no-deps 'it'\''s'");
    }

    #[test]
    fn quotes_the_empty_argument_and_shell_signs() {
        assert_eq!(Cmd::words("echo").arg("").arg("$HOME").arg("a=b").to_string(), "echo '' '$HOME' a=b");
    }
}
