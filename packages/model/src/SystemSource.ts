/** The type of a team's source whose requests are the gateway's own events: nobody can send to it. */
export const systemType = "SYSTEM"

/** The header of its requests that names the type of the event, for filters of connections. */
export const systemEventHeader = "x-gateway-system-event"
