/** What a link has put behind `#`. It is dropped from the address before anything is requested. */
export const fragment: {
  token?: string
  u?: string
  e?: string
  to?: string
  [key: string]: string | undefined
} = Object.fromEntries(new URLSearchParams(location.hash.slice(1)))

if (location.hash.includes('=')) history.replaceState(history.state, '', location.pathname + location.search)
