/** How a token is obtained: from which provider, as which client and for which scope. */
export interface Grant {
  /** The token endpoint. */
  readonly tokenUrl: string
  /** The scope as written; null: the default of the API's connector, or of the provider. */
  readonly scope: string | null
  readonly how: ClientCredentials | RefreshToken | AuthorizationCode | Assertion | AssumedRole
}

/** The gateway's client at the provider. */
export interface Client {
  readonly id: string
  readonly secret: string
  /** `none`: a public client, which has no secret. */
  readonly method: "client_secret_basic" | "client_secret_post" | "none"
}

interface ClientCredentials {
  readonly kind: "client_credentials"
  readonly client: Client
  readonly audience: string | null
}

interface RefreshToken {
  readonly kind: "refresh_token"
  readonly client: Client
  readonly refreshToken: string
}

/** A user has consented, or is going to. */
export interface AuthorizationCode {
  readonly kind: "authorization_code"
  readonly client: Client
  readonly audience: string | null
  /** Where a user gives consent; null: consent was given elsewhere. */
  readonly authorizationUrl: string | null
  /** Where the user is redirected after consent; null: to the gateway. */
  readonly redirectUri: string | null
  /** The code of a consent given elsewhere, valid for one exchange. */
  readonly code: { readonly code: string; readonly verifier: string | null } | null
  readonly refreshToken: string | null
}

/** A service account: it signs an assertion of its identity. */
interface Assertion {
  readonly kind: "assertion"
  readonly email: string
  /** PKCS 8, in PEM. */
  readonly privateKey: string
  readonly keyId: string | null
  /** The user for whom it acts, if it may act for others. */
  readonly subject: string | null
}

/** A key of an AWS account. */
export interface SigningKey {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}

/** A role of an AWS account: the key of one that may assume it asks for a key that is valid for a while. */
export interface AssumedRole {
  readonly kind: "assumed_role"
  readonly key: SigningKey
  readonly region: string
  readonly roleArn: string
  readonly sessionName: string
  readonly externalId: string | null
}
