//! Requests to the kernel's routing socket, blocking. Answers come at once: it is no network.

use std::io;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// Sends one request and gathers its answers; `dump` asks for all of a kind.
pub(crate) fn ask(
    request: RouteNetlinkMessage,
    dump: bool,
) -> io::Result<Vec<RouteNetlinkMessage>> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut packet = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::from(request));
    packet.header.flags = NLM_F_REQUEST | if dump { NLM_F_DUMP } else { 0 };
    packet.header.sequence_number = 1;
    packet.finalize();
    let mut bytes = vec![0; packet.buffer_len()];
    packet.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    let mut answers = Vec::new();
    loop {
        let (datagram, _) = socket.recv_from_full()?;
        let mut rest = &datagram[..];
        while rest.len() >= 16 {
            let message = match NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest) {
                Ok(message) => message,
                // an attribute that this build does not know: the message is passed over, not the dump
                Err(_) => {
                    let length = u32::from_ne_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
                    let step = length.div_ceil(4) * 4;
                    if step < 16 || step > rest.len() {
                        break;
                    }
                    rest = &rest[step..];
                    continue;
                }
            };
            let length = (message.header.length as usize).div_ceil(4) * 4;
            match message.payload {
                NetlinkPayload::Done(_) => return Ok(answers),
                NetlinkPayload::Error(error) => {
                    return match error.code {
                        Some(_) => Err(error.to_io()),
                        None => Ok(answers),
                    };
                }
                NetlinkPayload::InnerMessage(inner) => answers.push(inner),
                _ => {}
            }
            if !dump {
                return Ok(answers);
            }
            if length < 16 || length > rest.len() {
                break;
            }
            rest = &rest[length..];
        }
    }
}
