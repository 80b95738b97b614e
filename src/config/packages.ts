/** Whether an optional package is installed; it is loaded on first use. */
export function isInstalled(name: string): boolean {
  try {
    import.meta.resolve(name)
    return true
  } catch {
    return false
  }
}
