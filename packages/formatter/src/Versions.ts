import { phoneVersion } from "./engine/Libraries.ts"

/** The data that results depend on beside the engine: they change with the platform, and the engine's version does not. */
export interface DataVersions {
  readonly icu: string
  readonly cldr: string
  readonly tz: string
  readonly phone: string
}

/** Those of a platform: `process.versions`. */
export const dataVersions = (platform: Readonly<Record<string, string | undefined>>): DataVersions => ({
  icu: platform["icu"] ?? "",
  cldr: platform["cldr"] ?? "",
  tz: platform["tz"] ?? "",
  phone: phoneVersion()
})
