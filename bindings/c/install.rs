// Where the files of an installed library lie. xtask and the tests both include this file.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Puts header, libraries and pkg-config file below `prefix`. `built` is the directory into which cargo built the
/// package, `source` that of the package, `version` that of the library; `put` copies a library, or links to it.
pub fn install(
    built: &Path,
    source: &Path,
    prefix: &Path,
    version: &str,
    put: fn(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    let [include, lib, pkgconfig] = ["include", "lib", "lib/pkgconfig"].map(|name| prefix.join(name));
    for directory in [&include, &lib, &pkgconfig] {
        fs::create_dir_all(directory)?;
    }
    for name in ["slicewise.h", "slicewise.hpp"] {
        fs::copy(source.join("include").join(name), include.join(name))?;
    }
    let shared = format!("libslicewise.so.{version}");
    // A program may have the old file mapped: it is replaced, never written into.
    for (library, name) in [("libslicewise_c.a", "libslicewise.a"), ("libslicewise_c.so", &shared)] {
        let name = lib.join(name);
        remove(&name)?;
        put(&built.join(library), &name)?;
    }
    for (link, to) in [("libslicewise.so.0", shared.as_str()), ("libslicewise.so", "libslicewise.so.0")] {
        let link = lib.join(link);
        remove(&link)?;
        symlink(to, &link)?;
    }
    let template = fs::read_to_string(source.join("slicewise.pc.in"))?;
    let text = template.replace("@prefix@", &prefix.to_string_lossy()).replace("@version@", version);
    fs::write(pkgconfig.join("slicewise.pc"), text)
}

fn remove(path: &Path) -> io::Result<()> {
    if path.symlink_metadata().is_ok() { fs::remove_file(path) } else { Ok(()) }
}
