//! Certificates for one test, created with the program `openssl`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Files with the certificates of two authorities. The first one has signed the certificate of the
/// server.
#[derive(Debug, Clone)]
pub(crate) struct Certificates {
    pub(crate) server: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) authority: PathBuf,
    pub(crate) stranger: PathBuf,
}

impl Certificates {
    /// Creates the certificates. The name of the server is `localhost`. Returns `None` without the
    /// program `openssl`.
    pub(crate) fn make(folder: &Path) -> Option<Self> {
        Command::new("openssl").arg("version").output().ok()?;
        let openssl = |arguments: &str| {
            let mut command = Command::new("openssl");
            let command = command.current_dir(folder).args(arguments.split(' '));
            let made = command.output().unwrap();
            assert!(made.status.success(), "{arguments}: {made:?}");
        };
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        for name in ["authority", "stranger"] {
            openssl(&format!(
                "req -x509 {key} -days 2 -subj /CN={name} -keyout {name}.key -out {name}.pem \
                 -addext keyUsage=critical,keyCertSign"
            ));
        }
        openssl(&format!(
            "req {key} -subj /CN=localhost -keyout server.key -out server.csr"
        ));
        fs::write(folder.join("names"), "subjectAltName=DNS:localhost").unwrap();
        openssl(
            "x509 -req -in server.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days \
             2 -extfile names -out server.pem",
        );
        let file = |name: &str| folder.join(name);
        Some(Self {
            server: file("server.pem"),
            key: file("server.key"),
            authority: file("authority.pem"),
            stranger: file("stranger.pem"),
        })
    }
}
