/** A problem of an installation, and how to fix it. */
export type Finding = { finding: string; what: string; remedy: string }
