/** A request before it is signed. Header names are in lower case; `nowSeconds` is Unix time. */
export interface Unsigned {
  readonly method: string
  /** The public URL of the request, with its query. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  readonly nowSeconds: number
  /** Message id: the value of signed headers that the request does not have. */
  readonly id: string
}

/** The headers that signing adds, and the body. The body changes if the provider keeps its timestamp in it. */
export interface Signed {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** Signs a request; returns null if its body is not of the kind that the provider signs: a JSON object, or a form. */
export type Signer = (request: Unsigned) => Signed | null
