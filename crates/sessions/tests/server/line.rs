//! A proxy to a server that can stop forwarding without closing connections.

use std::path::Path;

use tempfile::TempDir;
use tokio::{
    io::{copy, copy_bidirectional, sink},
    net::{UnixListener, UnixStream},
    sync::watch,
    task::AbortHandle,
};

/// Forwards all data until it is cut. Then it closes the connections to the server, but not those
/// to the clients.
#[derive(Debug)]
pub(crate) struct Line {
    folder: TempDir,
    is_cut: watch::Sender<bool>,
    /// Number of clients that connected after the cut.
    unheard: watch::Receiver<usize>,
    task: AbortHandle,
}

impl Line {
    pub(crate) fn to(server: &Path) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("pg")
            .tempdir_in("/tmp")
            .unwrap();
        let name = server.file_name().unwrap();
        let listener = UnixListener::bind(folder.path().join(name)).unwrap();
        let (is_cut, cut) = watch::channel(false);
        let (calls, unheard) = watch::channel(0);
        let server = server.to_owned();
        let task = tokio::spawn(async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                let mut cut = cut.clone();
                if *cut.borrow() {
                    calls.send_modify(|calls| *calls += 1);
                }
                let server = server.clone();
                tokio::spawn(async move {
                    if !*cut.borrow() {
                        let mut server = UnixStream::connect(server).await.unwrap();
                        tokio::select! {
                            _ = copy_bidirectional(&mut client, &mut server) => return,
                            _ = cut.wait_for(|is_cut| *is_cut) => {}
                        }
                    }
                    // The client gets no response as long as it waits.
                    let _ = copy(&mut client, &mut sink()).await;
                });
            }
        })
        .abort_handle();
        Self {
            folder,
            is_cut,
            unheard,
            task,
        }
    }

    /// Returns the folder with the socket of the proxy.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn cut(&self) {
        self.is_cut.send_replace(true);
    }

    /// Forwards new connections again.
    pub(crate) fn mend(&self) {
        self.is_cut.send_replace(false);
    }

    /// Waits until a client has connected after the cut.
    pub(crate) async fn unheard(&mut self) {
        let unheard = self.unheard.wait_for(|calls| *calls > 0).await;
        assert!(unheard.is_ok());
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.task.abort();
    }
}
