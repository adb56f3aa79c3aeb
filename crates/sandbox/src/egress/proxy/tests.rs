use tokio::io::AsyncBufReadExt as _;

use super::*;

/// Answers each connection with what it has received up to an empty line.
async fn echo(listener: TcpListener) {
    while let Ok((client, _)) = listener.accept().await {
        let mut client = tokio::io::BufReader::new(client);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") && client.read_line(&mut head).await.unwrap() > 0 {}
        client.write_all(format!("HTTP/1.1 200 OK\r\n\r\n{head}").as_bytes()).await.unwrap();
    }
}

/// Sends a request to a proxy that permits these servers, and returns the answer. `PORT` stands for the server's port.
async fn ask(entries: &[&str], request: &str) -> String {
    let mut tasks = JoinSet::new();
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = server.local_addr().unwrap().port().to_string();
    tasks.spawn(echo(server));
    let list: Vec<String> = entries.iter().map(|entry| entry.replace("PORT", &port)).collect();
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = TcpStream::connect(proxy.local_addr().unwrap()).await.unwrap();
    tasks.spawn(serve(proxy, Arc::new(DomainList::parse(&list).unwrap())));
    client.write_all(request.replace("PORT", &port).as_bytes()).await.unwrap();
    client.shutdown().await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    answer.replace(&port, "PORT")
}

#[tokio::test]
async fn a_request_reaches_the_server_of_its_url() {
    let request = "POST http://127.0.0.1:PORT/a/b?c=d HTTP/1.1\r\nHost: evil.test\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: x\r\n\
                   Connection: keep-alive\r\nX-A: 1\r\n\r\n";
    let expect =
        "HTTP/1.1 200 OK\r\n\r\nPOST /a/b?c=d HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nConnection: close\r\nX-A: 1\r\n\r\n";
    assert_eq!(ask(&["127.0.0.1:PORT"], request).await, expect);
}

#[tokio::test]
async fn a_tunnel_carries_everything_after_the_request() {
    let request = "CONNECT 127.0.0.1:PORT HTTP/1.1\r\nHost: x\r\n\r\nhello\r\n\r\n";
    let expect = "HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\n\r\nhello\r\n\r\n";
    assert_eq!(ask(&["127.0.0.1:PORT"], request).await, expect);
}

#[tokio::test]
async fn other_servers_are_refused_with_the_reason() {
    let listed = "is not in the list of servers that this sandbox may reach";
    let internal = "has an address of this machine or its networks";
    for (entries, request, status, reason) in [
        (&["127.0.0.1:1"], "CONNECT 127.0.0.1:PORT HTTP/1.1\r\n\r\n", "403", listed),
        (&["localhost"], "CONNECT 127.0.0.1:PORT HTTP/1.1\r\n\r\n", "403", listed),
        // The name is permitted, but its address is internal.
        (&["localhost:PORT"], "CONNECT localhost:PORT HTTP/1.1\r\n\r\n", "403", internal),
        (&["localhost:PORT"], "GET http://localhost:PORT/ HTTP/1.1\r\n\r\n", "403", internal),
        (&["good.test"], "GET http://evil.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n", "403", listed),
        (&["good.test"], "GET http://good.test@evil.test/ HTTP/1.1\r\n\r\n", "403", listed),
        (&["good.test"], "GET http://evil.test\\@good.test/ HTTP/1.1\r\n\r\n", "403", listed),
        (&["good.test"], "CONNECT evil.test:443#good.test:443 HTTP/1.1\r\n\r\n", "400", "name:port"),
        (&["good.test"], "GET / HTTP/1.1\r\nHost: good.test\r\n\r\n", "400", "proxy"),
        (&["good.test"], "GET ftp://good.test/ HTTP/1.1\r\n\r\n", "400", "proxy"),
        (&["good.test"], "CONNECT good.test HTTP/1.1\r\n\r\n", "400", "name:port"),
        (&["good.test"], "\u{16}\u{3}\u{1}", "400", "invalid"),
        (&["good.test"], "GET http://good.test/", "400", "incomplete"),
    ] {
        let answer = ask(entries, request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
        assert!(answer.contains(reason), "{request}: {answer}");
    }
    let long = format!("GET http://good.test/{} HTTP/1.1\r\n\r\n", "a".repeat(MAX_HEAD));
    assert!(ask(&["good.test"], &long).await.starts_with("HTTP/1.1 431 "));
}
