/* A TCP echo server and its client, and UDP, over the loopback interface; DHCP and DNS are linked and begun. */

#include <stdio.h>
#include <string.h>

#include "lwip/dhcp.h"
#include "lwip/dns.h"
#include "lwip/etharp.h"
#include "lwip/init.h"
#include "lwip/netif.h"
#include "lwip/tcp.h"
#include "lwip/timeouts.h"
#include "lwip/udp.h"
#include "netif/ethernet.h"

enum { TOTAL = 40000 };

static unsigned now, to_send, echoed, sum_sent, sum_got, datagrams, frames, state = 99;
static struct tcp_pcb *client;

u32_t sys_now(void) {
    return now;
}

unsigned board_random(void) {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static void fill(void) {
    static unsigned char bytes[1000];
    while (to_send < TOTAL && tcp_sndbuf(client) >= sizeof bytes) {
        for (unsigned i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)board_random();
        if (tcp_write(client, bytes, sizeof bytes, TCP_WRITE_FLAG_COPY) != ERR_OK) return;
        for (unsigned i = 0; i < sizeof bytes; i++) sum_sent = sum_sent * 31 + bytes[i];
        to_send += sizeof bytes;
    }
    tcp_output(client);
}

static err_t on_sent(void *context, struct tcp_pcb *pcb, u16_t n) {
    (void)context, (void)pcb, (void)n;
    fill();
    return ERR_OK;
}

static err_t on_echo(void *context, struct tcp_pcb *pcb, struct pbuf *p, err_t code) {
    (void)context, (void)code;
    if (!p) return ERR_OK;
    for (struct pbuf *each = p; each; each = each->next)
        for (unsigned i = 0; i < each->len; i++) sum_got = sum_got * 31 + ((unsigned char *)each->payload)[i];
    echoed += p->tot_len;
    tcp_recved(pcb, p->tot_len);
    pbuf_free(p);
    if (echoed == TOTAL) tcp_close(pcb);
    return ERR_OK;
}

static err_t on_connected(void *context, struct tcp_pcb *pcb, err_t code) {
    (void)context, (void)pcb;
    printf("connected: %d\n", code);
    fill();
    return ERR_OK;
}

static err_t on_request(void *context, struct tcp_pcb *pcb, struct pbuf *p, err_t code) {
    (void)context, (void)code;
    if (!p) return tcp_close(pcb);
    for (struct pbuf *each = p; each; each = each->next)
        if (tcp_write(pcb, each->payload, each->len, TCP_WRITE_FLAG_COPY) != ERR_OK) return ERR_MEM;
    tcp_recved(pcb, p->tot_len);
    pbuf_free(p);
    return tcp_output(pcb);
}

static err_t on_accepted(void *context, struct tcp_pcb *pcb, err_t code) {
    (void)context;
    tcp_recv(pcb, on_request);
    return code;
}

static void on_datagram(void *context, struct udp_pcb *pcb, struct pbuf *p, const ip_addr_t *from, u16_t port) {
    (void)context, (void)pcb, (void)from, (void)port;
    datagrams += p->tot_len;
    pbuf_free(p);
}

static err_t on_frame(struct netif *netif, struct pbuf *p) {
    (void)netif;
    frames += p->tot_len;
    return ERR_OK;
}

static err_t set_up_ethernet(struct netif *netif) {
    static const unsigned char address[6] = {2, 0, 0, 0, 0, 1};
    netif->output = etharp_output;
    netif->linkoutput = on_frame;
    netif->mtu = 1500;
    netif->hwaddr_len = sizeof address;
    memcpy(netif->hwaddr, address, sizeof address);
    netif->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_LINK_UP;
    return ERR_OK;
}

static void on_name(const char *name, const ip_addr_t *address, void *context) {
    (void)context;
    printf("%s: %s\n", name, address ? ipaddr_ntoa(address) : "not known");
}

int main(void) {
    static struct netif ethernet;
    ip_addr_t here = IPADDR4_INIT_BYTES(127, 0, 0, 1), found;
    lwip_init();
    struct tcp_pcb *server = tcp_new();
    tcp_bind(server, &here, 7);
    server = tcp_listen(server);
    tcp_accept(server, on_accepted);
    client = tcp_new();
    tcp_recv(client, on_echo);
    tcp_sent(client, on_sent);
    tcp_connect(client, &here, 7, on_connected);
    struct udp_pcb *udp = udp_new();
    udp_bind(udp, &here, 9);
    udp_recv(udp, on_datagram, NULL);
    struct pbuf *p = pbuf_alloc(PBUF_TRANSPORT, 700, PBUF_RAM);
    memset(p->payload, 1, 700);
    udp_sendto(udp, p, &here, 9);
    pbuf_free(p);
    netif_add_noaddr(&ethernet, NULL, set_up_ethernet, ethernet_input);
    netif_set_up(&ethernet);
    dhcp_start(&ethernet);
    dns_setserver(0, &here);
    dns_gethostbyname("board.example", &found, on_name, NULL);
    for (; now < 60000; now += 10) {
        netif_poll_all();
        sys_check_timeouts();
    }
    printf("echoed %u of %u, %s; datagrams %u; frames %u\n", echoed, to_send,
           sum_got == sum_sent ? "equal" : "different", datagrams, frames);
    return echoed != TOTAL || sum_got != sum_sent;
}
