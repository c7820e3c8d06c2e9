/* TCP, UDP, DHCP and DNS without an operating system, and a loopback interface. */

#define NO_SYS 1
#define SYS_LIGHTWEIGHT_PROT 0
#define LWIP_SOCKET 0
#define LWIP_NETCONN 0
#define LWIP_DHCP 1
#define LWIP_DNS 1
#define LWIP_IPV6 0
#define LWIP_ETHERNET 1
#define LWIP_HAVE_LOOPIF 1
#define LWIP_NETIF_LOOPBACK 1
#define MEM_ALIGNMENT 4
#define MEM_SIZE 32768
#define MEMP_NUM_TCP_SEG 32
#define TCP_SND_QUEUELEN 32
#define TCP_MSS 1460
#define TCP_SND_BUF (4 * TCP_MSS)
#define TCP_WND (4 * TCP_MSS)
#define LWIP_RAND() board_random()
unsigned board_random(void);
