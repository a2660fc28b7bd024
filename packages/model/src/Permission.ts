/**
 * Who may make a call. Each endpoint declares it once; authorization, the API's documentation and the tests of team isolation
 * read it there.
 */

/** A person's role in a team. */
export type Role = "member" | "owner"

/** The scopes of a project key. None implies another; `control:execute` also needs the exact route among the key's grants. */
export const scopes = ["control:read", "control:edit", "control:execute", "tunnel:connect"] as const
export type Scope = (typeof scopes)[number]

export interface Principals {
  /**
   * The lowest role that a signed-in user needs. `self`: none, because the call concerns only the user. A site admin has every
   * role in every team.
   */
  readonly user: "self" | Role | "admin"
  /** Whether the team's API key may make the call. It acts as an owner. */
  readonly teamKey: boolean
  /** The scope that a project key needs; `any`: every project key may, whatever its scopes are; null: no project key may. */
  readonly scope: Scope | "any" | null
  /** Whether it returns stored payloads: then a project key needs `control:read` as well. */
  readonly answersPayloads?: true
}

/** `public`: anyone who knows the URL, without a credential or with one that belongs to the requested object. */
export type Permission = "public" | Principals

const members = (scope: Scope): Principals => ({ user: "member", teamKey: true, scope })

/** For reads. */
export const reading = members("control:read")
/** For changes of resources. */
export const editing = members("control:edit")
/** For calls that start something with existing resources. */
export const executing = members("control:execute")
/** For holding a tunnel open, through which a person's own machine receives a destination's deliveries. */
export const tunneling = members("tunnel:connect")
/** For calls that only a team's owners may make. */
export const administering: Principals = { user: "owner", teamKey: true, scope: null }
/** For calls that concern only the signed-in user. */
export const ofOneself: Principals = { user: "self", teamKey: false, scope: null }

/** For the question who calls, which every credential may ask. */
export const askingWhoCalls: Principals = { user: "self", teamKey: true, scope: "any" }

/** The same permission for calls that return stored payloads without being a read. */
export const answeringPayloads = (permission: Principals): Principals => ({ ...permission, answersPayloads: true })

/** The scopes that a project key needs for a call: all of them. Empty: no project key may make it, or every one. */
export const scopesFor = ({ answersPayloads, scope }: Principals): ReadonlyArray<Scope> => {
  if (scope === null || scope === "any") return []
  return answersPayloads === true && scope !== "control:read" ? [scope, "control:read"] : [scope]
}

/** The same permission without project keys. */
export const notByProjectKeys = (permission: Principals): Principals => ({ ...permission, scope: null })

/** The same permission for sessions only, without any keys. */
export const bySessions = (permission: Principals): Principals => ({ ...permission, teamKey: false, scope: null })

/** The scopes that together allow a key everything that an owner may do. */
const whole: ReadonlyArray<Scope> = ["control:read", "control:edit", "control:execute"]

/** The rights of a key. */
interface Rights {
  readonly isTeamKey: boolean
  readonly scopes: ReadonlyArray<Scope>
  /** Null: every route. */
  readonly grants: ReadonlyArray<string> | null
}

/** What a key lacks for a call. */
export type Lacking =
  | { readonly what: "session" }
  | { readonly what: "scope"; readonly scope: Scope }
  | { readonly what: "grant" }

/**
 * What a key lacks for a call of the route; null: nothing. `narrowed`: the route with the id of the object that the call is about,
 * which a grant may name instead. A call for owners needs the team's own key with all its scopes: a
 * narrowed key must not widen itself by new secrets.
 */
export const lackingOf = (
  permission: Principals,
  route: string,
  key: Rights,
  narrowed: string = route
): Lacking | null => {
  const { scope, teamKey, user } = permission
  if (key.isTeamKey ? !teamKey : scope === null) return { what: "session" }
  const needed = scope !== null ? scopesFor(permission) : user === "self" ? [] : whole
  const missing = needed.find((one) => !key.scopes.includes(one))
  if (missing !== undefined) return { what: "scope", scope: missing }
  const isGranted = key.grants === null || key.grants.includes(route) || key.grants.includes(narrowed)
  return scope === "control:execute" && !isGranted ? { what: "grant" } : null
}
