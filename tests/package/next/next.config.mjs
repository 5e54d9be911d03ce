// With these headers, threads may share memory.
const headers = [
  { key: 'Cross-Origin-Opener-Policy', value: 'same-origin' },
  { key: 'Cross-Origin-Embedder-Policy', value: 'require-corp' },
];

export default { headers: async () => [{ source: '/:path*', headers }] };
