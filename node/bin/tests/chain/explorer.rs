//! The explorer as a browser gets it: the page, its files and their headers, beside JSON-RPC on the same address.

use crate::support::*;
use serde_json::json;

fn get(node: &Node, path: &str) -> String {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nAccept: text/html\r\nConnection: close\r\n\r\n",
        node.address
    );
    exchange(&node.address, request.as_bytes())
}

#[test]
fn the_page_and_every_file_that_it_names_are_served() {
    let node = Node::start(&[]);
    let page = get(&node, "/");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("<title>Almanac</title>"), "{page}");
    assert!(page.contains("content-type: text/html"), "{page}");
    let named: Vec<&str> =
        page.split(['"', '\'']).filter(|part| part.starts_with("/assets/") || *part == "/icon.svg").collect();
    assert!(named.len() >= 3, "script, style and icon: {named:?}");
    for path in named {
        let file = get(&node, path);
        assert!(file.starts_with("HTTP/1.1 200"), "{path}: {}", &file[..80]);
        assert_eq!(file.contains("immutable"), path.starts_with("/assets/"), "{path}");
    }
    assert!(get(&node, "/assets/none.js").starts_with("HTTP/1.1 404"));
    assert!(get(&node, "/health").contains("\"status\":\"ok\""));
    assert_eq!(node.result("eth_chainId", json!([])), "0x7a69", "POST to the same path is JSON-RPC");
}

/// Nothing of the page may run that is not one of its files, and it may talk to its node alone.
#[test]
fn the_page_has_a_strict_policy_and_no_inline_script() {
    let node = Node::start(&[]);
    let page = get(&node, "/");
    let policy = page.lines().find_map(|line| line.strip_prefix("content-security-policy: ")).unwrap();
    for rule in ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"] {
        assert!(policy.split("; ").any(|given| given == rule), "{rule}: {policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    let body = page.split("\r\n\r\n").nth(1).unwrap();
    for script in body.split("<script").skip(1) {
        assert!(script.contains("src=") && script.split('>').nth(1) == Some("</script"), "{script}");
    }
    assert!(!body.contains("style=") && !body.contains("onload="), "{body}");
    assert!(!body.contains("http://") && !body.contains("https://"), "{body}");
}
