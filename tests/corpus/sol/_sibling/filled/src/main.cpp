// host, from beside
