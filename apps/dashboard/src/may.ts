import type { paths } from "@tidegate/client/source"
import type { Row } from "./gateway.ts"
import { useSession } from "./session.ts"

/** Who may make a call, as the API's document says. */
interface Permission {
  /** The role that a signed-in user needs; null: none. */
  readonly role: string | null
  /** Whether the team's own key may make it. */
  readonly teamKey: boolean
  /** The scopes that a project key needs; null: no project key may. */
  readonly scopes: ReadonlyArray<string> | null
}

/** The permissions of all calls that change something and need a credential. The build makes them of the API's document. */
declare const PERMISSIONS: Readonly<Record<string, Permission>>

type With<Method extends string> = {
  readonly [Path in keyof paths]: paths[Path] extends Readonly<Record<Method, object>> ? Path : never
}[keyof paths]

/** A call that changes something, as the API's document names it. */
export type Call = `POST ${With<"post">}` | `PUT ${With<"put">}` | `PATCH ${With<"patch">}` | `DELETE ${With<"delete">}`

/** The scopes with which the team's own key acts as an owner. */
const whole = ["control:read", "control:edit", "control:execute"]

/** The name of a route in the grants of keys: a call by PUT that can also be made by POST is the one by POST. */
const grantOf = (call: Call): string => {
  const twin = call.replace(/^PUT /, "POST ")
  const [method = "", path = ""] = (twin in PERMISSIONS ? twin : call).split(" ")
  return `${method}:/v1${path.replaceAll(/\{(\w+)\}/g, ":$1")}`
}

const lackingOf = (me: Row<"Session">, team: string, call: Call): string | null => {
  const permission = PERMISSIONS[call]
  // Everybody may make it.
  if (permission === undefined) return null
  const { role, scopes, teamKey } = permission
  const membership = me.memberships.find(({ team_id }) => team_id === team)
  if (me.key === undefined) {
    const isAllowed = role === null || role === membership?.role || (role === "member" && membership !== undefined)
    return isAllowed ? null : "Only an owner of the team can do this."
  }
  const isTeamKey = membership !== undefined
  if (isTeamKey ? !teamKey : scopes === null) return "Your key cannot do this. Sign in as an owner."
  const missing = (scopes ?? (role === null ? [] : whole)).find((scope) => !me.key!.scopes.some((one) => one === scope))
  if (missing !== undefined) return `Your key cannot do this: it lacks the scope ${missing}.`
  const { execute_grants } = me.key
  return scopes?.includes("control:execute") !== true ||
    execute_grants === null ||
    execute_grants.includes(grantOf(call))
    ? null
    : `Your key cannot do this: it may not execute ${grantOf(call)}.`
}

/** The right that the caller lacks for a call, in words. Null: none. The gateway decides; the pages only hide what it would refuse, and say why. */
export const useLacking = (): ((call: Call) => string | null) => {
  const { me, team } = useSession()
  return (call) => lackingOf(me, team, call)
}

/** Whether the caller may make a call. */
export const useMay = (): ((call: Call) => boolean) => {
  const lacking = useLacking()
  return (call) => lacking(call) === null
}
