//! Connection faults.

use std::io;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// A premature end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is closed in the middle of the response.
    Close,
    /// It is reset.
    Reset,
    /// Nothing more is sent, and it stays open.
    Hang,
}

impl Fault {
    pub(super) async fn strike(self, stream: &mut TcpStream) -> io::Result<()> {
        match self {
            Self::Close => stream.shutdown().await,
            Self::Reset => stream.set_zero_linger(),
            Self::Hang => {
                // If the other side gives up, the connection is over.
                let mut sink = [0; 64];
                loop {
                    stream.readable().await?;
                    match stream.try_read(&mut sink) {
                        Ok(0) => return Ok(()),
                        Ok(_) => {}
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(error) => return Err(error),
                    }
                }
            }
        }
    }
}
