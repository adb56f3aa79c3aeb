//! Sockets in the network namespace of another process.

use std::fs::{File, read_link};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Request for the user namespace that owns a namespace.
const NS_GET_USERNS: libc::Ioctl = 0xb701;

/// Opens a listening socket on the loopback address, in the network namespace of a process that this user has started.
///
/// Only a process with a single thread can enter the namespaces of another user namespace, so a forked one does that, and passes the socket
/// back. It never runs another program.
///
/// # Errors
/// Fails if the process is in this process's network namespace, or if a system call fails.
pub(super) fn listen_in(process: u32, port: u16) -> io::Result<TcpListener> {
    let path = format!("/proc/{process}/ns/net");
    if read_link(&path)? == read_link("/proc/self/ns/net")? {
        return Err(io::Error::other("the command has no network namespace of its own"));
    }
    let network = File::open(path)?;
    let owner = owner_of(network.as_fd())?;
    let (here, there) = UnixStream::pair()?;
    // The name is for error messages: the process ends before it would run the program.
    let mut command = Command::new("/bin/true");
    let enter = move || {
        move_into_link_name_space(owner.as_fd(), Some(LinkNameSpaceType::User))?;
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        send(&there, listener.as_fd())?;
        Err(io::Error::from_raw_os_error(libc::ECANCELED))
    };
    // SAFETY: after the fork, the closure only makes system calls. It allocates no memory and takes no locks.
    #[expect(unsafe_code, reason = "there is no other way to run code between fork and exec")]
    unsafe {
        command.pre_exec(enter);
    }
    match command.spawn() {
        Err(error) if error.raw_os_error() == Some(libc::ECANCELED) => receive(&here),
        Err(error) => Err(error),
        Ok(mut child) => {
            child.wait()?;
            Err(io::Error::other("the namespace was not entered"))
        }
    }
}

/// Returns the user namespace that owns a namespace.
fn owner_of(namespace: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: the request has no argument, and returns a new file descriptor or -1.
    #[expect(unsafe_code, reason = "the request has no safe wrapper")]
    unsafe {
        match libc::ioctl(namespace.as_raw_fd(), NS_GET_USERNS) {
            -1 => Err(io::Error::last_os_error()),
            owner => Ok(OwnedFd::from_raw_fd(owner)),
        }
    }
}

fn send(channel: &UnixStream, socket: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut buffer = SendAncillaryBuffer::new(&mut space);
    let sockets = [socket];
    if !buffer.push(SendAncillaryMessage::ScmRights(&sockets)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    sendmsg(channel, &[IoSlice::new(b"x")], &mut buffer, SendFlags::empty())?;
    Ok(())
}

fn receive(channel: &UnixStream) -> io::Result<TcpListener> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut buffer = RecvAncillaryBuffer::new(&mut space);
    recvmsg(channel, &mut [IoSliceMut::new(&mut [0])], &mut buffer, RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT)?;
    let sockets = buffer.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut sockets) => sockets.next(),
        _ => None,
    });
    sockets.map(TcpListener::from).ok_or_else(|| io::Error::other("no socket was passed"))
}
