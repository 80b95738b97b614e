/** How the server is. */
export const status = {
  title: 'Status',
  version: 'Version',
  process: 'Process',
  answers: 'answers',
  silent: 'does not answer',
  ready: 'Ready',
  is_ready: 'yes',
  socket: 'This tab’s socket',
  sockets: { open: 'connected', lost: 'reconnecting', off: 'not in use' } as Record<string, string>,
  clock: 'Clock',
  clock_same: 'This browser and the server agree.',
  clock_off: (seconds: number) =>
    seconds > 0
      ? `This browser is ${seconds} s ahead of the server.`
      : `This browser is ${-seconds} s behind the server.`,
  warnings: 'Warnings',
  zone: 'Times are shown in',
  zones: { '': 'the zone of this browser', utc: 'UTC' },
}
