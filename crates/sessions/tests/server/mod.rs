//! A PostgreSQL server for one test: in a temporary folder, with a socket in it, and with TLS on a
//! loopback port.

mod certificates;
mod line;

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tempfile::TempDir;

use certificates::Certificates;
pub(crate) use line::Line;

/// Help text for an installation of the server.
pub(crate) const WHERE: &str = "Its programs `initdb` and `postgres` are looked for in the folder \
    that SWITCHBOARD_POSTGRES_BIN names, on PATH, and in /usr/lib/postgresql/*/bin; `cargo xtask \
    postgres` gets them where there are none";

pub(crate) const PASSWORD: &str = "correct-horse";

/// A running server. It stops when this value is dropped. It also stops when this process is
/// killed, because a shell then reads the end of a pipe.
#[derive(Debug)]
pub(crate) struct Server {
    shell: Child,
    programs: PathBuf,
    user: Option<User>,
    folder: TempDir,
    port: u16,
    /// The certificates. `None` without the program `openssl`.
    certificates: Option<Certificates>,
}

/// The user who runs the server. PostgreSQL refuses to run as root.
#[derive(Debug, Clone, Copy)]
struct User {
    uid: u32,
    gid: u32,
}

impl Server {
    /// Starts a server. Returns `None` if none is installed.
    pub(crate) fn start() -> Option<Self> {
        let programs = programs()?;
        // The folder has a short path, because the path of a socket may have only about a hundred
        // bytes.
        let folder = tempfile::Builder::new()
            .prefix("pg")
            .tempdir_in("/tmp")
            .unwrap();
        let user = unprivileged(folder.path());
        let programs = reachable(programs, user, folder.path());
        let data = folder.path().join("data");
        let password = folder.path().join("password");
        fs::write(&password, PASSWORD).unwrap();
        if let Some(User { uid, gid }) = user {
            chown(&password, Some(uid), Some(gid)).unwrap();
        }
        let mut initdb = as_user(&programs.join("initdb"), user, folder.path());
        initdb.args([
            "--username=switchboard",
            "--auth=scram-sha-256",
            "--no-sync",
        ]);
        initdb.args(["--encoding=UTF8", "--locale=C"]);
        initdb
            .arg("--pwfile")
            .arg(&password)
            .arg("--pgdata")
            .arg(&data);
        let made = initdb.output().unwrap();
        assert!(made.status.success(), "{made:?}");
        let certificates = Certificates::make(folder.path());
        if let (Some(User { uid, gid }), Some(made)) = (user, &certificates) {
            chown(&made.key, Some(uid), Some(gid)).unwrap();
        }
        // Another process may take the free port first, so the start is tried several times.
        let mut tries = 0;
        let (shell, port) = loop {
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = free.local_addr().unwrap().port();
            drop(free);
            let certificates = certificates.as_ref();
            if let Some(shell) = serve(&programs, user, folder.path(), port, certificates) {
                break (shell, port);
            }
            tries += 1;
            assert!(tries < 3, "the server did not start");
        };
        Some(Self {
            shell,
            programs,
            user,
            folder,
            port,
            certificates,
        })
    }

    /// Stops the server and closes all connections.
    pub(crate) fn stop(&mut self) {
        // Closing the pipe ends the shell.
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }

    /// Starts the server again after [`stop`](Self::stop).
    pub(crate) fn start_again(&mut self) {
        let (folder, certificates) = (self.folder.path(), self.certificates.as_ref());
        let shell = serve(&self.programs, self.user, folder, self.port, certificates);
        self.shell = shell.unwrap();
    }

    /// Creates a database and returns its URL.
    pub(crate) async fn database(&self, name: &str) -> String {
        let mut admin = PgConnection::connect(&self.url("postgres", PASSWORD))
            .await
            .unwrap();
        let create = AssertSqlSafe(format!("CREATE DATABASE {name} TEMPLATE template0"));
        admin.execute(create).await.unwrap();
        admin.close().await.unwrap();
        self.url(name, PASSWORD)
    }

    pub(crate) fn url(&self, database: &str, password: &str) -> String {
        let (port, folder) = (self.port, self.folder.path().display());
        format!("postgres://switchboard:{password}@localhost:{port}/{database}?host={folder}")
    }

    /// Returns the URL of a database over TLS, with the certificates. Returns `None` if there are
    /// no certificates.
    pub(crate) fn with_tls(&self, database: &str, host: &str) -> Option<(String, &Certificates)> {
        let port = self.port;
        let url = format!("postgres://switchboard:{PASSWORD}@{host}:{port}/{database}");
        Some((url, self.certificates.as_ref()?))
    }
}

/// Creates a proxy to the server of this URL. Returns the URL through the proxy.
pub(crate) fn line_to(url: &str) -> (Line, String) {
    let (address, folder) = url.split_once("?host=").unwrap();
    let port = address.rsplit(['/', ':']).nth(1).unwrap();
    let line = Line::to(&Path::new(folder).join(format!(".s.PGSQL.{port}")));
    let url = format!("{address}?host={}", line.folder().display());
    (line, url)
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Starts the server. Returns `None` and prints its output if it ends.
fn serve(
    programs: &Path,
    user: Option<User>,
    folder: &Path,
    port: u16,
    certificates: Option<&Certificates>,
) -> Option<Child> {
    let mut shell = as_user(Path::new("sh"), user, folder);
    shell.arg("-c").arg(
        "program=$1; shift; \"$program\" -c listen_addresses=127.0.0.1 -c max_connections=300 -c \
         fsync=off \
            -c log_min_messages=log \"$@\" 2>&1 & server=$!
        read -r end; kill -INT $server; wait $server",
    );
    shell.arg("sh").arg(programs.join("postgres"));
    shell.arg("-D").arg(folder.join("data"));
    shell.arg("-k").arg(folder).arg("-p").arg(port.to_string());
    if let Some(made) = certificates {
        let file = |name: &str, path: &Path| format!("{name}={}", path.display());
        shell.args(["-c", "ssl=on", "-c"]);
        shell.arg(file("ssl_cert_file", &made.server)).arg("-c");
        shell.arg(file("ssl_key_file", &made.key));
    }
    shell.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    if is_ready(&mut shell) {
        return Some(shell);
    }
    // Closing the pipe ends the shell.
    drop(shell.stdin.take());
    let _ = shell.wait();
    None
}

/// Returns the folder with `initdb` and `postgres`.
fn programs() -> Option<PathBuf> {
    let named = env::var_os("SWITCHBOARD_POSTGRES_BIN").map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let mut debian: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin"))
        .collect();
    debian.sort();
    named
        .into_iter()
        .chain(env::split_paths(&path))
        .chain(debian.into_iter().rev())
        .find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
}

/// If this process runs as root, returns another user for the server and gives the folder to this
/// user.
fn unprivileged(folder: &Path) -> Option<User> {
    let metadata = fs::metadata(folder).unwrap();
    if metadata.uid() != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let user = ["postgres", "nobody"].into_iter().find_map(|name| {
        let line = users
            .lines()
            .find(|line| line.starts_with(&format!("{name}:")))?;
        let mut fields = line.split(':').skip(2).map(str::parse);
        let (uid, gid) = (fields.next()?.ok()?, fields.next()?.ok()?);
        Some(User { uid, gid })
    });
    let user = user.unwrap();
    chown(folder, Some(user.uid), Some(user.gid)).unwrap();
    Some(user)
}

/// Returns a folder with programs that the user can start. Copies the programs if the user cannot
/// access them.
fn reachable(programs: PathBuf, user: Option<User>, folder: &Path) -> PathBuf {
    let starts = |programs: &Path| {
        let mut initdb = as_user(&programs.join("initdb"), user, folder);
        let version = initdb.arg("--version").output();
        version.is_ok_and(|version| version.status.success())
    };
    if starts(&programs) {
        return programs;
    }
    // The whole installation is copied, because the programs find their libraries by a relative
    // path.
    let all = fs::canonicalize(programs.parent().unwrap()).unwrap();
    let copy = folder.join("programs");
    let mut copying = Command::new("cp");
    let copied = copying.arg("-R").arg(&all).arg(&copy).status().unwrap();
    assert!(copied.success());
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    let programs = copy.join(programs.file_name().unwrap());
    assert!(
        starts(&programs),
        "{} cannot be started",
        programs.display()
    );
    programs
}

fn as_user(program: &Path, user: Option<User>, folder: &Path) -> Command {
    let mut command = Command::new(program);
    // The user may not have access to the current folder. The locale makes the messages English.
    command
        .current_dir(folder)
        .env("LC_ALL", "C")
        .env("HOME", folder);
    if let Some(User { uid, gid }) = user {
        command.uid(uid).gid(gid);
    }
    command
}

/// Waits until the server accepts connections or has ended.
fn is_ready(shell: &mut Child) -> bool {
    let mut lines = BufReader::new(shell.stdout.take().unwrap()).lines();
    let mut said = String::new();
    for line in lines.by_ref() {
        let line = line.unwrap();
        if line.contains("ready to accept connections") {
            // Later output is read too, because a full pipe would block the server.
            thread::spawn(move || lines.for_each(drop));
            return true;
        }
        said.push_str(&line);
        said.push('\n');
        // The shell stays alive until the pipe is closed, so the output has no end here.
        if line.contains("database system is shut down") {
            break;
        }
    }
    let _ = std::io::stderr().write_all(said.as_bytes());
    false
}
