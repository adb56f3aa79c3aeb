//! The network, and local sockets.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use pinch_sandbox::confinement::NetworkAccess;

use crate::bench::{SandboxBench, in_each, sh, skipped};

#[tokio::test]
async fn the_network_is_unreachable_unless_requested() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{}", listener.local_addr().unwrap().port());
    in_each(SandboxBench::asked, |name, machine, bench| {
        let script = script.clone();
        async move {
            assert_ne!(sh(&*machine, &bench.workspace, &script).await.0, 0, "{name}");
            assert_ne!(sh(&*machine, &bench.workspace, "exec 3<>/dev/udp/192.0.2.1/9").await.0, 0, "{name}");
        }
    })
    .await;
    in_each(
        |bench| bench.asked().network(NetworkAccess::On),
        |name, machine, bench| {
            let script = script.clone();
            async move {
                assert_eq!(sh(&*machine, &bench.workspace, &script).await, (0, String::new()), "{name}");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn local_sockets_are_unreachable() {
    let abstract_name = format!("pinch-sandbox-test-{}", std::process::id());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&abstract_name).unwrap()).unwrap();
    for network in [NetworkAccess::Off, NetworkAccess::On] {
        in_each(
            |bench| bench.asked().network(network),
            |name, machine, bench| {
                let path = bench.secret.parent().unwrap().join("socket");
                let listener = UnixListener::bind(&path).unwrap();
                let abstract_name = abstract_name.clone();
                async move {
                    if sh(&*machine, &bench.workspace, "python3 -c ''").await.0 != 0 {
                        return skipped("there is no python3 to open sockets with");
                    }
                    let connect = |address: &str| {
                        format!("python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{address}\")'")
                    };
                    for address in [format!("{}", path.display()), format!("\\0{abstract_name}")] {
                        let (status, output) = sh(&*machine, &bench.workspace, &connect(&address)).await;
                        assert_ne!(status, 0, "{name} {network:?}: {address:?} {output}");
                    }
                    let pair = "python3 -c 'import socket; a, b = socket.socketpair(); a.send(b\"x\")'";
                    assert_eq!(sh(&*machine, &bench.workspace, pair).await, (0, String::new()), "{name}");
                    drop(listener);
                }
            },
        )
        .await;
    }
}
