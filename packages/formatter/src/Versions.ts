import { phoneVersion } from "./engine/Libraries.ts"

/** Data versions on which results depend, besides the engine: they change with the platform, not with the engine's version. */
export interface DataVersions {
  readonly icu: string
  readonly cldr: string
  readonly tz: string
  readonly phone: string
}

/** The data versions of a platform: `process.versions`. */
export const dataVersions = (platform: Readonly<Record<string, string | undefined>>): DataVersions => ({
  icu: platform["icu"] ?? "",
  cldr: platform["cldr"] ?? "",
  tz: platform["tz"] ?? "",
  phone: phoneVersion()
})
