const form = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/**
 * Whether the host of a URL is this machine by its name: `localhost`, 127.0.0.0/8 or `[::1]`. The client has the same rule (`Tunnel.ts`), because it
 * is published without other packages.
 */
export const isLoopbackHost = (hostname: string): boolean => form.test(hostname)
