/** How the gateway shows itself to a server by TLS, and which authorities it trusts to know that server. */
export interface ClientTls {
  /** The same for the same content: connections are shared by it. It shows nothing of the key. */
  readonly id: string
  /** The certificate with those between it and its authority, and its key, in PEM; null: the gateway shows none. */
  readonly identity: { readonly certificate: string; readonly key: string } | null
  /** In PEM. Null: the authorities of the process. */
  readonly authorities: string | null
}
