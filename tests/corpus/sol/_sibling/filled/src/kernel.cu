// device, from beside
