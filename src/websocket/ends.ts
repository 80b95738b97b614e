/** The close codes that the server sends, with their reasons. */
export const ends = {
  1001: 'shutting down',
  1011: 'internal error',
  1013: 'slow consumer',
  4001: 'revoked',
  4003: 'heartbeat timeout',
  4004: 'too many sockets',
  4005: 'credential expired',
  4006: 'credentials changed',
} as const
export type EndCode = keyof typeof ends
