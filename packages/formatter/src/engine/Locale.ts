import { Fault } from "./Fault.ts"
import { memo } from "./Memo.ts"

const canonical = memo(100, (name: string): { readonly locale: string | null } => {
  try {
    const [locale] = Intl.NumberFormat.supportedLocalesOf(name)
    return { locale: locale ?? null }
  } catch {
    return { locale: null }
  }
})

/** The canonical form of a locale; accepts `en_US` and `en-us`. */
export const localeOf = (name: string, field: string): string => {
  const { locale } = name.length > 64 ? { locale: null } : canonical(name.trim().replaceAll("_", "-"))
  if (locale === null)
    throw new Fault("FORMATTER_LOCALE_UNKNOWN", "there is no such locale", { field, value_preview: name.slice(0, 64) })
  return locale
}
