//! The network, and local sockets.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use pinch_sandbox::confinement::NetworkAccess;
use pinch_sandbox::contract::Sandbox as _;
use pinch_sandbox::domains::DomainList;
use pinch_sandbox::landlock::LandlockSandbox;

use crate::bench::{SandboxBench, greeting_server, in_each, sh, skipped};

#[tokio::test]
async fn the_network_is_unreachable_unless_requested() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
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
                if name == "podman" {
                    return skipped("the network of a container has loopback addresses of its own");
                }
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
    let listed = NetworkAccess::Domains(DomainList::parse(&["example.com"]).unwrap());
    for network in [NetworkAccess::Off, NetworkAccess::On, listed] {
        in_each(
            |bench| bench.asked().network(network.clone()),
            |name, machine, bench| {
                let path = bench.secret.parent().unwrap().join("socket");
                let listener = UnixListener::bind(&path).unwrap();
                let (abstract_name, network) = (abstract_name.clone(), network.clone());
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

#[tokio::test]
async fn only_listed_servers_are_reachable_through_the_proxy() {
    let (listed, other) = (greeting_server("from the listed server"), greeting_server("from another server"));
    let list = DomainList::parse(&[format!("127.0.0.1:{listed}"), format!("localhost:{other}")]).unwrap();
    in_each(
        |bench| bench.asked().network(NetworkAccess::Domains(list.clone())),
        |name, machine, bench| async move {
            let run = async |script: &str| sh(&*machine, &bench.workspace, script).await;
            let via_proxy = |request: &str| {
                format!(
                    "proxy=${{https_proxy#http://}}; exec 3<>/dev/tcp/${{proxy%:*}}/${{proxy#*:}}; printf '{request}\\r\\n\\r\\nx' >&3; cat <&3"
                )
            };
            for (request, expect) in [
                (format!("CONNECT 127.0.0.1:{listed} HTTP/1.1"), "from the listed server"),
                (format!("GET http://127.0.0.1:{listed}/ HTTP/1.1"), "from the listed server"),
                (format!("CONNECT 127.0.0.1:{other} HTTP/1.1"), "403 Forbidden"),
                (format!("CONNECT localhost:{other} HTTP/1.1"), "403 Forbidden"),
                (format!("GET http://127.0.0.1:{other}/ HTTP/1.1"), "403 Forbidden"),
                ("CONNECT 192.0.2.1:443 HTTP/1.1".to_owned(), "403 Forbidden"),
            ] {
                let (_, output) = run(&via_proxy(&request)).await;
                assert!(output.contains(expect), "{name} {request}: {output}");
            }
            // Nothing else is reachable, whatever a program does with the variables.
            for target in [
                format!("tcp/127.0.0.1/{listed}"),
                format!("tcp/127.0.0.1/{other}"),
                format!("tcp/localhost/{other}"),
                "tcp/192.0.2.1/443".to_owned(),
                "udp/192.0.2.1/53".to_owned(),
            ] {
                let (status, output) = run(&format!("unset https_proxy; exec 3<>/dev/{target}")).await;
                assert_ne!(status, 0, "{name} {target}: {output}");
            }
            let (_, interfaces) = run("cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' '").await;
            assert_eq!(interfaces, "lo\n", "{name}");
        },
    )
    .await;
}

#[tokio::test]
async fn a_backend_that_cannot_limit_the_network_refuses_with_a_remedy() {
    if LandlockSandbox.probe().await.is_err() {
        return skipped("this kernel does not support Landlock");
    }
    let bench = SandboxBench::new();
    let list = DomainList::parse(&["example.com"]).unwrap();
    let entered = LandlockSandbox.enter(&bench.asked().network(NetworkAccess::Domains(list))).await;
    let error = entered.err().unwrap();
    assert!(error.reason.contains("limit network access to a list of servers"), "{error}");
    assert!(error.remedy.contains("bubblewrap"), "{}", error.remedy);
}
