//! Why a bundled server did not start or ended too early.

use std::{io, net::SocketAddr, path::PathBuf};

use switchboard_domain::nearest::did_you_mean;

/// Why a bundled server did not start or ended too early. Each text says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// No bundled server has this name.
    #[error(
        "there is no bundled server `{name}`{}; there are: {}",
        did_you_mean(*nearest),
        known.join(", ")
    )]
    UnknownServer {
        /// The name that was asked for.
        name: String,
        /// The known name that is most like it, if one is like it at all.
        nearest: Option<&'static str>,
        /// Every known name.
        known: Vec<&'static str>,
    },
    /// A setting of this server is missing or wrong.
    #[error("the server `{server}` cannot start: {problem}")]
    Setting {
        /// The server.
        server: &'static str,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// The data file cannot be used.
    #[error("the data file `{}` cannot be used: {problem}", path.display())]
    Data {
        /// The file as it was given.
        path: PathBuf,
        /// What is wrong with it.
        problem: DataProblem,
    },
    /// The data could not be set up in memory, which only a lack of memory should cause.
    #[error("the data could not be set up in memory: {reason}")]
    Memory {
        /// What the database said.
        reason: String,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}{}", listen_advice(source))]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// Other machines can reach the address, and no token is set.
    #[error(
        "{address} can be reached from other machines, and no access token is configured: bind to 127.0.0.1, or \
         set the variable `SWITCHBOARD_TOKEN`"
    )]
    Unguarded {
        /// The address.
        address: SocketAddr,
    },
    /// The client did not keep to the protocol before a session had begun, so there is none.
    #[error("the client did not begin as the Model Context Protocol asks: {reason}")]
    Handshake {
        /// What it did instead.
        reason: String,
    },
    /// The server ended although nobody asked it to.
    #[error("the server ended unexpectedly: {reason}")]
    Ended {
        /// What is known about it.
        reason: String,
    },
}

impl ServerError {
    /// Whether what was asked for was wrong (a name, a file, an address), and not the serving.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::UnknownServer { .. }
            | Self::Setting { .. }
            | Self::Data { .. }
            | Self::Listen { .. }
            | Self::Unguarded { .. } => true,
            Self::Memory { .. } | Self::Handshake { .. } | Self::Ended { .. } => false,
        }
    }
}

/// What is wrong with a data file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataProblem {
    /// It is a folder.
    #[error("it is a folder; name a file in it")]
    Folder,
    /// The folder that it should be in does not exist.
    #[error("the folder `{}` does not exist; create it first", folder.display())]
    NoFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// It is a file of another kind.
    #[error(
        "it is not an SQLite database; name another file, and one that does not exist is created"
    )]
    NotADatabase,
    /// It is a database of some other program, which is left alone.
    #[error(
        "it is the database of another program; name another file, and one that does not exist is \
         created"
    )]
    Foreign,
    /// It has a layout that this version does not know.
    #[error("it was written by a newer version (layout {found}, this one knows {known})")]
    Newer {
        /// The layout of the file.
        found: i64,
        /// The newest layout that this version knows.
        known: i64,
    },
    /// The file, or the folder for its journal, is write-protected, or the file cannot be created.
    #[error(
        "it cannot be created or written to; check its name, and the permissions of the file and \
         of its folder"
    )]
    NotWritable,
    /// Another process did not let go of it in time.
    #[error("another process is using it and did not let go; try again")]
    Busy,
    /// Something else, in the words of the database.
    #[error("{reason}")]
    Other {
        /// What the database said.
        reason: String,
    },
}

fn listen_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; choose another port, or 0 for any that is free",
        io::ErrorKind::PermissionDenied => {
            "; choose a port from 1024 up, or 0 for any that is free"
        }
        io::ErrorKind::AddrNotAvailable => "; no network interface has this address",
        _ => "",
    }
}
